"""Optimizers as values; torch's own do the work."""

from dataclasses import dataclass
from typing import Protocol

import torch

from longspan.errors import bad

Shape = tuple[int, ...]


class Optimizer(Protocol):
    """How weights are changed, as data."""

    @property
    def lr(self) -> float:
        """The learning rate."""
        ...

    @property
    def weight_decay(self) -> float:
        """How much of itself a weight loses in a step, times the learning rate."""
        ...

    def keeps(self, shape: Shape) -> dict[str, Shape]:
        """What it keeps of a parameter of some shape, and the shapes of that."""
        ...

    def build(self, groups: list[dict[str, object]]) -> torch.optim.Optimizer:
        """torch's optimizer for some groups of parameters."""
        ...


@dataclass(frozen=True, kw_only=True)
class AdamW:
    """AdamW (Loshchilov and Hutter 2019), torch's fused one."""

    lr: float = 3e-5
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    def __post_init__(self) -> None:
        _check(self.lr, self.weight_decay)
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise bad("betas", "two numbers of at least 0 and less than 1", self.betas)

    def keeps(self, shape: Shape) -> dict[str, Shape]:
        """What it keeps of a parameter of some shape, and the shapes of that."""
        return {"step": (), "exp_avg": shape, "exp_avg_sq": shape}

    def build(self, groups: list[dict[str, object]]) -> torch.optim.Optimizer:
        """torch's optimizer for some groups of parameters."""
        return torch.optim.AdamW(groups, lr=self.lr, betas=self.betas, eps=self.eps, fused=True)


@dataclass(frozen=True, kw_only=True)
class Adafactor:
    """Adafactor (Shazeer and Stern 2018): the second moments of a matrix as one row and one column."""

    lr: float = 1e-2
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        _check(self.lr, self.weight_decay)

    def keeps(self, shape: Shape) -> dict[str, Shape]:
        """What it keeps of a parameter of some shape, and the shapes of that."""
        if len(shape) < 2:
            return {"step": (), "variance": shape}
        return {"step": (), "row_var": (*shape[:-1], 1), "col_var": (*shape[:-2], 1, shape[-1])}

    def build(self, groups: list[dict[str, object]]) -> torch.optim.Optimizer:
        """torch's optimizer for some groups of parameters."""
        return torch.optim.Adafactor(groups, lr=self.lr)


OPTIMIZERS = {"adamw": AdamW, "adafactor": Adafactor}
"""By name, for command lines."""


def _check(lr: float, weight_decay: float) -> None:
    if not 0 < lr < float("inf"):
        raise bad("lr", "more than 0", lr)
    if not 0 <= weight_decay < float("inf"):
        raise bad("weight_decay", "at least 0", weight_decay)
