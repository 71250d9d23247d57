"""The weights that a run changes and what its optimizer remembers of them, by name."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from longspan.errors import bad, refused
from longspan.training.config import TrainingConfig
from longspan.training.groups import parameter_groups
from longspan.training.ranks import Ranks, shared

SEPARATOR = "."


class Weights:
    """Trainable parameters, in float32: those of a half type have copies, from which they are rounded anew.

    What an optimizer keeps of a parameter is known as NAME.exp_avg and so on.
    """

    def __init__(self, model: nn.Module, config: TrainingConfig, exact: nn.Module | None = None) -> None:
        """`exact` is the model before it was made one of a half type."""
        self.model = model
        self.named = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not self.named:
            raise bad(
                "model", "with weights that are trained", "frozen", "Let some of them require a gradient."
            )
        half = torch.float16, torch.bfloat16
        values = dict((exact or model).named_parameters())
        self._copies = {
            name: shared(values[name].detach().float(), p).clone().requires_grad_()
            for name, p in self.named.items()
            if p.dtype in half
        }
        self.changed: dict[str, Tensor] = {**self.named, **self._copies}
        groups = parameter_groups(
            model, config.optimizer.lr, config.optimizer.weight_decay, config.layer_decay, config.rates
        )
        self._scales = [group.scale for group in groups]
        self._optimizer = config.optimizer.build(
            [
                {"params": [self.changed[name] for name in group.names], "weight_decay": group.weight_decay}
                for group in groups
            ]
        )
        self._lr, self._keeps = config.optimizer.lr, config.optimizer.keeps
        self._before: dict[str, Tensor] | None = None

    def collect(self) -> None:
        """Add gradients of half types to those of their copies: micro-batches are summed in float32."""
        for name, copy in self._copies.items():
            p = self.named[name]
            if p.grad is not None:
                grad, p.grad = p.grad.float(), None
                copy.grad = grad if copy.grad is None else copy.grad.add_(grad)

    @property
    def gradients(self) -> list[Tensor]:
        """Those of the parameters that a step has reached: the others stay as they are."""
        return [p.grad for p in self.changed.values() if p.grad is not None]

    def sum_gradients(self, group: Ranks) -> None:
        """Make gradients the sums over all processes; what one of them has reached, all have."""
        if group.count > 1 and not group.sharded:
            reached = group.sum([float(p.grad is not None) for p in self.changed.values()])
            for p, count in zip(self.changed.values(), reached, strict=True):
                if count and p.grad is None:
                    p.grad = torch.zeros_like(p)
            group.sum_gradients(self.gradients)

    def norm(self) -> float:
        """The length of all gradients together."""
        norm = torch.nn.utils.get_total_norm(self.gradients)
        whole = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        return float(whole)

    def update(self, factor: float, rate: float) -> None:
        """Change the weights by their gradients times `factor`; `rate` is a factor of the learning rate."""
        torch._foreach_mul_(self.gradients, factor)
        for group, scale in zip(self._optimizer.param_groups, self._scales, strict=True):
            group["lr"] = self._lr * scale * rate
        self._optimizer.step()
        self._round()
        self.forget_gradients()

    def forget_gradients(self) -> None:
        """Free them."""
        for p in (*self.named.values(), *self._copies.values()):
            p.grad = None

    @torch.no_grad()
    def _round(self) -> None:
        for name, copy in self._copies.items():
            self.named[name].copy_(copy)

    def state(self) -> dict[str, dict[str, Tensor]]:
        """All tensors that a checkpoint holds, by file."""
        memory = self._optimizer.state
        kept = {
            f"{name}{SEPARATOR}{key}": torch.as_tensor(value)
            for name, p in self.changed.items()
            for key, value in memory[p].items()
        }
        return {"model": {name: p.detach() for name, p in self.changed.items()}, "optimizer": kept}

    @torch.no_grad()
    def restore(self, state: Mapping[str, Mapping[str, Tensor]], place: object) -> None:
        """Take the tensors of a checkpoint."""
        stored = state["model"]
        if stored.keys() != self.changed.keys():
            odd = sorted(stored.keys() ^ self.changed.keys())[0]
            raise refused(place, f"it has other weights than the model: {odd}")
        for name, p in self.changed.items():
            if stored[name].shape != p.shape:
                raise refused(
                    place, f"{name} has the shape {tuple(stored[name].shape)}, not {tuple(p.shape)}"
                )
            p.copy_(shared(stored[name], p))
        self._round()
        self._restore_optimizer(state.get("optimizer", {}), place)

    def _restore_optimizer(self, stored: Mapping[str, Tensor], place: object) -> None:
        memory: dict[str, dict[str, Any]] = {name: {} for name in self.changed}
        for key, value in stored.items():
            name, _, kind = key.rpartition(SEPARATOR)
            if name not in memory:
                raise refused(place, f"it has a state of {name}, which the model has not")
            memory[name][kind] = value
        for name, kept in memory.items():
            p = self.changed[name]
            if not kept:  # no step has reached it
                continue
            found = {kind: tuple(value.shape) for kind, value in kept.items()}
            if found != (wanted := self._keeps(tuple(p.shape))):
                raise refused(place, f"the optimizer keeps {found} of {name}, not {wanted}")
            for kind, value in kept.items():
                exact = value.to(torch.float32 if kind == "step" else p.dtype)
                kept[kind] = shared(exact, p).clone()
        self._optimizer.state.clear()
        self._optimizer.state.update({self.changed[name]: kept for name, kept in memory.items() if kept})

    def state_bytes(self) -> int:
        """What the optimizer is going to keep, if it keeps nothing yet."""
        if self._optimizer.state:
            return 0
        kept = ((p, self._keeps(tuple(p.shape)).values()) for p in self.changed.values())
        return sum(prod(shape) * p.element_size() for p, shapes in kept for shape in shapes)

    @torch.no_grad()
    def put(self, values: Mapping[str, Tensor]) -> None:
        """Other values in the place of the weights."""
        for name, p in self.changed.items():
            p.copy_(shared(values[name], p))
        self._round()

    @contextmanager
    def taken(self, values: Mapping[str, Tensor]) -> Iterator[None]:
        """The same inside the block; afterwards they are as before."""
        self._before = {name: p.detach().clone() for name, p in self.changed.items()}
        try:
            self.put(values)
            yield
        finally:
            self.give_back()

    def give_back(self) -> None:
        """End `taken` if it has begun, wherever a signal has stopped it."""
        if self._before is not None:
            self.put(self._before)
            self._before = None
