"""What every backend takes and returns, and how the portable ones read the masks of a plan."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from longspan.engine.plan import PlanArrays

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)


class Problem(NamedTuple):
    """One attention: score = cap(scale * (q . k + (q + content) . relative[label])) + table[label] + log m.

    cap(x) is softcap * tanh(x / softcap), or x without a softcap.
    """

    q: Tensor  # (N, H, D)
    k: Tensor  # (K, G, D), where G divides H: query head h reads key head h // (H / G)
    v: Tensor  # (K, G, Dv)
    arrays: "PlanArrays"
    scale: float
    relative: Tensor | None = None  # (L, H, D)
    content: Tensor | None = None  # (H, D)
    table: Tensor | None = None  # (L, H)
    dropout: float = 0.0
    seed: Tensor | None = None  # int64 scalar, present whenever dropout > 0
    softcap: float | None = None


class Gradients(NamedTuple):
    """The gradient of every input of a problem; None where the input is absent."""

    q: Tensor
    k: Tensor
    v: Tensor
    relative: Tensor | None = None
    content: Tensor | None = None
    table: Tensor | None = None


class Backend(Protocol):
    """A way to compute attention; it may refuse a problem, with reasons, but never changes a result."""

    @property
    def name(self) -> str: ...

    @property
    def trusts_plans(self) -> bool:
        """Whether it reads a plan's arrays without looking at what they say first."""

    def refuses(self, problem: Problem) -> list[str]:
        """Why it cannot solve this problem; empty if it can."""

    def forward(self, problem: Problem, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """out (N, H, Dv) in the dtype of q, contiguous, and lse (N, H) in the dtype of the arithmetic.

        The first may be written to `out`, or need not be: the caller looks.
        """

    def backward(
        self, problem: Problem, out: Tensor, lse: Tensor, grad_out: Tensor, grad_lse: Tensor | None
    ) -> Gradients:
        """Gradients of the inputs, from what forward returned and the gradients of that."""


def arithmetic(dtype: torch.dtype) -> torch.dtype:
    """The dtype to compute in. Half types are widened: a bfloat16 matmul may trap on CPUs that claim AMX."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def unpack(words: Tensor) -> Tensor:
    """Bits of int64 words, lowest first: (...) -> (..., 64) bool."""
    return (words.unsqueeze(-1) >> torch.arange(64, device=words.device)).bitwise_and_(1).bool()


def pack(bits: Tensor) -> Tensor:
    """The opposite of unpack: (..., 64) bool -> (...) int64."""
    return (bits.long() << torch.arange(64, device=bits.device)).sum(-1)


def allowed(arrays: "PlanArrays", entries: Tensor) -> Tensor:
    """Bit rows of the real pairs that entries (..., 4) allow, (..., 64) int64; mask -2 allows none."""
    key_tile, mask = entries[..., 0], entries[..., 1]
    none_and_all = torch.tensor([[0], [-1]], device=arrays.masks.device).expand(2, 64)
    pool = torch.cat([arrays.masks, none_and_all])  # masks -2 and -1 find the last two rows
    return pool[mask] & pack(arrays.k_rows[key_tile] >= 0).unsqueeze(-1)
