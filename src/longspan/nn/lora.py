"""LoRA: a linear layer stays as it is, and two thin matrices beside it are learned (Hu et al. 2021)."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan.errors import bad, number, whole
from longspan.nn.activations import Activation
from longspan.nn.linear import ALL, after, by_weight, is_plain, wide

MOST_RANK = 2**14


@dataclass(frozen=True, kw_only=True)
class LoraConfig:
    """How a change is learned, in peft's words.

    >>> LoraConfig(r=4, lora_alpha=8).scaling
    2.0
    """

    r: int = 8
    "The rank of the change."
    lora_alpha: float = 16
    "The change is multiplied by lora_alpha / r,"
    lora_dropout: float = 0.0
    "What of its inputs is dropped in training."
    use_rslora: bool = False
    "or by lora_alpha / sqrt(r) (Kalajdzievski 2023)."

    def __post_init__(self) -> None:
        whole("r", self.r, 1, most=MOST_RANK)
        number("lora_alpha", self.lora_alpha, 0, 1e6)
        number("lora_dropout", self.lora_dropout, 0.0, 1.0, below=True)
        if not isinstance(self.use_rslora, bool):
            raise bad("use_rslora", "True or False", self.use_rslora)

    @property
    def scaling(self) -> float:
        """What the product of the thin matrices is multiplied by."""
        return self.lora_alpha / (math.sqrt(self.r) if self.use_rslora else self.r)


class Outputs(NamedTuple):
    """Outputs of a layer that have thin matrices of their own: [start, stop)."""

    start: int
    stop: int


class LoraLinear(nn.Linear):
    """x (N, in) -> x W' + b + scaling * (x A') B', of which A and B are learned.

    A layer that stands for several of another model (queries, keys and values) has thin matrices for each of
    these `parts`, or for some. B begins as 0 and A as peft has it, so at first nothing changes.

    >>> layer = LoraLinear(nn.Linear(3, 6), LoraConfig(r=2), [Outputs(0, 2), Outputs(4, 6)])
    >>> [tuple(a.shape) for a in layer.lora_A], [tuple(b.shape) for b in layer.lora_B]
    ([(2, 3), (2, 3)], [(2, 2), (2, 2)])
    """

    def __init__(
        self,
        layer: nn.Linear,
        config: LoraConfig,
        parts: Sequence[Outputs],
        generator: torch.Generator | None = None,
    ) -> None:
        nn.Module.__init__(self)
        if not is_plain(layer):
            raise bad("layer", "a linear layer without hooks or adapters", type(layer).__name__)
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight = layer.weight
        self.register_parameter("bias", layer.bias)
        self.config, self.parts = config, tuple(parts)
        device = layer.weight.device
        new = [torch.empty(config.r, self.in_features, device=device) for _ in self.parts]
        for a in new:
            nn.init.kaiming_uniform_(a, a=math.sqrt(5), generator=generator)
        self.lora_A = nn.ParameterList(new)
        self.lora_B = nn.ParameterList(
            torch.zeros(stop - start, config.r, device=device) for start, stop in self.parts
        )
        self._kept: tuple[nn.Parameter, ...] = ()
        self.train(layer.training)

    @property
    def merged(self) -> bool:
        """Whether the change is part of the weight at present."""
        return bool(self._kept)

    def forward(self, x: Tensor) -> Tensor:
        return self.fused(x, None, ALL, then=None, times=None, plus=None)

    def fused(
        self,
        x: Tensor,
        into: Tensor | None,
        rows: slice,
        *,
        then: Activation | None,
        times: Tensor | None,
        plus: Tensor | None,
    ) -> Tensor:
        """then(the layer's outputs `rows`) * times + plus, written to `into` where that is given."""
        weight, bias = self.weight[rows], None if self.bias is None else self.bias[rows]
        if self.merged:
            return by_weight(x, weight, bias, into, then=then, times=times, plus=plus)
        a, b = self.factors(rows)
        seen = F.dropout(x, self.config.lora_dropout) if self._drops else x
        thin = by_weight(seen.to(a.dtype), a, None)  # (N, in) -> (N, R)
        if torch.is_grad_enabled():
            y = by_weight(x, weight, bias)
            if y.dim() == 2 and y.dtype == b.dtype == torch.float32:
                y = torch.addmm(y, thin, b.t())  # one pass less than a product and a sum
            else:
                y = y + by_weight(thin, b, None).to(y.dtype)
            return after(y, then, times, plus, into)
        alone = then is None and times is None
        change = by_weight(thin, b, None, plus=plus if alone else None)  # (N, R) -> (N, out)
        y = by_weight(x, weight, bias, into if alone else None, plus=change)
        return y if alone else after(y, then, times, plus, into)

    def matrix(self) -> tuple[Tensor, Tensor | None]:
        """Weight and bias with the change in them, for those who read them."""
        if self.merged:
            return self.weight, self.bias
        a, b = self.factors()
        if self._drops:  # inputs are not seen here: some are dropped for all rows alike
            a = a * F.dropout(a.new_ones(1, self.in_features), self.config.lora_dropout)
        return wide(self.weight) + b @ a, self.bias

    def factors(self, rows: slice = ALL) -> tuple[Tensor, Tensor]:
        """A (R, in) and scaling * B (out, R) of all parts side by side, of some outputs."""
        columns = [
            F.pad(b, (0, 0, start, self.out_features - stop))
            for b, (start, stop) in zip(self.lora_B, self.parts, strict=True)
        ]
        return torch.cat([*self.lora_A]), torch.cat(columns, dim=1)[rows] * self.config.scaling

    @torch.no_grad()
    def merge(self) -> None:
        """Make the change a part of the weight; the weight without it is kept."""
        if not self.merged:
            a, b = self.factors()
            changed = (wide(self.weight) + b @ a).to(self.weight.dtype)
            self._kept = (cast(nn.Parameter, self.weight),)
            self.weight = nn.Parameter(changed, requires_grad=False)

    def unmerge(self) -> None:
        """The weight as it was, bit by bit, and the change beside it."""
        if self.merged:
            (self.weight,) = self._kept
            self._kept = ()

    @property
    def _drops(self) -> bool:
        return self.training and self.config.lora_dropout > 0

    def extra_repr(self) -> str:
        many = f", parts={len(self.parts)}" if len(self.parts) > 1 else ""
        return f"{super().extra_repr()}, r={self.config.r}{many}{', merged' * self.merged}"


def lora_layers(model: nn.Module) -> dict[str, LoraLinear]:
    """The layers of a model that have a change beside them, by name."""
    return {name: part for name, part in model.named_modules() if isinstance(part, LoraLinear)}


def exchange(model: nn.Module, old: nn.Module, new: nn.Module) -> None:
    """Put a module into all places of another one."""
    for owner in list(model.modules()):
        for name in [name for name, part in owner._modules.items() if part is old]:
            setattr(owner, name, new)


def merge_adapter(model: nn.Module) -> None:
    """Make all changes parts of their weights: reading then costs what it did without them."""
    for layer in _some(model):
        layer.merge()


def unmerge_adapter(model: nn.Module) -> None:
    """Take all changes out of their weights again; these are as they were, bit by bit."""
    for layer in _some(model):
        layer.unmerge()


@contextmanager
def merged(model: nn.Module) -> Iterator[None]:
    """Inside the block all changes, if there are any, are parts of their weights."""
    beside = [layer for layer in lora_layers(model).values() if not layer.merged]
    for layer in beside:
        layer.merge()
    try:
        yield
    finally:
        for layer in beside:
            layer.unmerge()


def unload(model: nn.Module) -> None:
    """Make the layers torch's own again; what is not merged is lost."""
    for layer in _some(model):
        plain = nn.Linear.__new__(nn.Linear)
        nn.Module.__init__(plain)
        plain.in_features, plain.out_features = layer.in_features, layer.out_features
        plain.weight = layer.weight
        plain.register_parameter("bias", layer.bias)
        exchange(model, layer, plain.train(layer.training))


def merge_and_unload(model: nn.Module) -> None:
    """Make all changes parts of their weights for good: the model can be saved, exported or made int8."""
    merge_adapter(model)
    unload(model)


def _some(model: nn.Module) -> list[LoraLinear]:
    layers = list(lora_layers(model).values())
    if not layers:
        raise bad("model", "one with an adapter", "without", "add_lora() gives it one.")
    return layers
