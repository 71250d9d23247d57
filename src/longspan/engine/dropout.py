"""Counter-based dropout: a hash of the pair decides, so that every backend and every batch agrees."""

from dataclasses import dataclass

import torch
from torch import Tensor

from longspan.errors import bad


@dataclass(frozen=True, eq=False)
class Dropout:
    """Drops each probability with probability `p`, keyed by (seed, document, head, query and key position).

    The same seed drops the same pairs; draw a new seed for each step and layer. Under torch.compile pass the
    seed as an int64 scalar tensor: a new seed is then new data, not a new graph.

    >>> Dropout(0.1, seed=7)
    Dropout(p=0.1, seed=7)
    """

    p: float
    "Probability of dropping, 0 <= p < 1."
    seed: int | Tensor
    "A 64-bit integer, or an int64 scalar tensor."

    def __post_init__(self) -> None:
        if not 0 <= self.p < 1:
            raise bad("p", "at least 0 and less than 1", self.p)
        if isinstance(self.seed, Tensor):
            if self.seed.dtype != torch.int64 or self.seed.dim():
                value = f"{self.seed.dtype} of shape {tuple(self.seed.shape)}"
                raise bad("seed", "an int64 scalar tensor", value, "Use torch.tensor(7).")
        elif type(self.seed) is not int or not -(2**63) <= self.seed < 2**63:
            raise bad("seed", "a whole number of 64 bits", self.seed)

    def counter(self, device: torch.device) -> Tensor:
        """The seed as an int64 scalar tensor."""
        return torch.as_tensor(self.seed, dtype=torch.int64, device=device)


def row_hash(seed: Tensor, document: Tensor, position: Tensor, head: Tensor) -> Tensor:
    """The part of a pair's hash that depends on its query row; int32 columns that broadcast."""
    start = _mix(_mix(seed.to(torch.int32)) ^ (seed >> 32).to(torch.int32))
    return _mix(_mix(_mix(start + document) ^ (head * _signed(0x9E3779B9))) + position)


def key_hash(position: Tensor) -> Tensor:
    """The part of a pair's hash that depends on its key."""
    return _mix(position ^ _signed(0x85EBCA6B))


def kept(row: Tensor, key: Tensor, p: float) -> Tensor:
    """Which pairs survive: bool, the broadcast of row and key hashes."""
    return _mix(row + key) ^ _signed(2**31) >= int(p * 2**32) - 2**31


def _mix(x: Tensor) -> Tensor:
    """A 32-bit hash with full avalanche; int32 holds the bits, so shifts must drop the copied sign."""
    x = x ^ ((x >> 16) & 0xFFFF)
    x = x.mul_(0x7FEB352D)
    x = x.bitwise_xor_((x >> 15) & 0x1FFFF)
    x = x.mul_(_signed(0x846CA68B))
    return x.bitwise_xor_((x >> 16) & 0xFFFF)


def _signed(word: int) -> int:
    """The int32 with the same bits."""
    return word - 2**32 if word >= 2**31 else word
