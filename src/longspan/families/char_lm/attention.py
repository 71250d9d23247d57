"""Attention by relative positions (Transformer-XL; Dai et al. 2019, section 3.3), and exact rotary angles."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from longspan.engine.call import AnyPlan, attention
from longspan.engine.terms import RelativeKeys
from longspan.nn.attention import CacheUpdate, fresh_dropout
from longspan.nn.linear import linear, new_linear
from longspan.nn.rope import RopeParameters
from longspan.nn.rotary import Rotations
from longspan.nn.rows import Scratch, projected
from longspan.shapes import IntArray

BASE = 10_000.0


class ScoreBiases(NamedTuple):
    """What all layers add to their queries, (H, D) each: u before keys, v before distances."""

    content: Tensor
    position: Tensor


class RelativeAttention(nn.Module):
    """x (N, C) to the context of each row (N, C), before the output projection `out`.

    A score is ((q + u) . k + (q + v) . R(distance)) / sqrt(D). `distances` are sinusoids (L, C), one for each
    label of the plan, or the keys (L, H, D) that `relative_keys` makes of them. Else as SelfAttention.
    """

    int8_layers: tuple[str, ...] = ("qkv", "out")

    def __init__(self, width: int, heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.qkv = new_linear(width, 3 * width, bias=False)
        self.out = new_linear(width, width, bias=False)
        self.relative = new_linear(width, width, bias=False)
        self.heads, self.dropout = heads, dropout

    def forward(
        self,
        x: Tensor,
        pairs: AnyPlan,
        distances: Tensor,
        biases: ScoreBiases,
        *,
        scratch: Scratch | None = None,
        cache: CacheUpdate | None = None,
    ) -> Tensor:
        q, k, v = (
            linear(self.qkv, x, projected(scratch)).view(x.shape[0], 3, self.heads, -1).unbind(1)
        )  # (N, 3C) -> (N, H, D)
        k, v = (k, v) if cache is None else cache(k, v)
        relative = distances if distances.dim() == 3 else self.relative_keys(distances)
        terms = (RelativeKeys(relative, content=biases.position - biases.content),)
        context = attention(q + biases.content, k, v, pairs, terms=terms, dropout=fresh_dropout(self))
        return context.flatten(1)  # (N, H, D) -> (N, C)

    def relative_keys(self, sinusoids: Tensor) -> Tensor:
        """What queries are compared with for each distance, (L, C) -> (L, H, D)."""
        rows = sinusoids.to(next(self.relative.parameters()).dtype)
        return linear(self.relative, rows).view(len(rows), self.heads, -1)

    def key_values(self, x: Tensor, distances: Tensor) -> tuple[Tensor, Tensor]:
        """The keys and values of rows (K, C) that are seen, but see nothing themselves."""
        rows = slice(x.shape[1], None)
        k, v = linear(self.qkv, x, rows=rows).view(len(x), 2, self.heads, -1).unbind(1)  # -> (K, H, D)
        return k, v


def sinusoids(count: int, width: int) -> Tensor:
    """Distances 0 to count - 1 as waves of many lengths, sines first: (count, C), in float64.

    >>> sinusoids(2, 2).float()
    tensor([[0.0000, 1.0000],
            [0.8415, 0.5403]])
    """
    steps = torch.arange(0, width, 2, dtype=torch.float64, device="cpu")
    angles = torch.arange(count, dtype=torch.float64, device="cpu").outer(BASE ** (-steps / width))
    return torch.cat([angles.sin(), angles.cos()], 1)[:, :width]


def rotations(rope: RopeParameters, size: int, positions: IntArray) -> Rotations:
    """The angles of rows at some positions, for heads of `size`.

    They are computed in float64: a stream goes on for millions of characters, where float32 has no angles.
    """
    places = torch.from_numpy(positions.astype("float64")).unsqueeze(1)
    angles = places * rope.frequencies(size).double()  # (N, 1) * (D / 2) -> (N, D / 2)
    return Rotations((angles.cos() * rope.scaling).float(), (angles.sin() * rope.scaling).float())
