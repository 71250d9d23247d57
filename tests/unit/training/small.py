"""A small model and data whose loss is quick to compute: sums of numbers, with dropout."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from longspan.shapes import IntArray
from longspan.training.source import Loss


class Small(nn.Module):
    """Numbers (N, 3) to numbers (N, 1)."""

    def __init__(self, dropout: float = 0.1, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.first, self.norm, self.last = nn.Linear(3, 7), nn.LayerNorm(7), nn.Linear(7, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.last(self.dropout(self.norm(self.first(x))))
        return y


@dataclass(frozen=True)
class Rows:
    """Example i is some rows of noise around a plane; `broken` ones are no numbers."""

    count: int = 23
    longest: int = 9
    broken: tuple[int, ...] = ()

    @property
    def lengths(self) -> IntArray:
        return np.random.default_rng(5).integers(1, self.longest + 1, self.count)

    def batch(self, examples: IntArray, epoch: int) -> tuple[Tensor, Tensor]:
        rows = []
        for example in examples.tolist():
            draw = np.random.default_rng([epoch, example])
            x = draw.standard_normal((int(self.lengths[example]), 3)).astype(np.float32)
            rows.append(x * (np.nan if example in self.broken else 1))
        together = torch.from_numpy(np.concatenate(rows))
        return together, together @ torch.tensor([[1.0], [-2.0], [0.5]])


def squares(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Loss:
    """The summed squared error."""
    x, y = batch
    return Loss(((model(x) - y) ** 2).sum(), len(x))
