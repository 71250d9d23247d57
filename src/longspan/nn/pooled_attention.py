"""Pooled attention: a second level, at which each row sees pooled rows farther away (Zhang et al. 2021)."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from longspan.engine.call import AnyPlan, attention
from longspan.engine.dropout import Dropout
from longspan.engine.terms import ScoreTable
from longspan.nn.linear import linear, new_linear
from longspan.nn.pooling import Pooling, Slots
from longspan.nn.rows import writes_over


class PooledKeys(NamedTuple):
    """What the second level sees."""

    slots: Slots
    pairs: AnyPlan
    "From all rows to the slots."


class PooledAttention(nn.Module):
    """The first level's context Y (N, C) to Y + Z, where Z is attention to pooled keys and values.

    Queries, keys and values are its `own` projections of Y, or of the layer's input X if `mix`; otherwise
    those by the first level's weights, with `mix` the very same. Without `residual` the result is Z alone.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        pooling: Pooling,
        *,
        own: bool = True,
        mix: bool = False,
        residual: bool = True,
    ) -> None:
        super().__init__()
        if own:
            self.query, self.key, self.value = (new_linear(width, width) for _ in range(3))
        self.pooling, self.heads = pooling, heads
        self.own, self.mix, self.residual = own, mix, residual

    def forward(
        self,
        x: Tensor,
        y: Tensor,
        qkv: Tensor,
        first: nn.Module,
        pooled: PooledKeys,
        biases: tuple[ScoreTable, ...] = (),
        *,
        dropout: Dropout | None = None,
        scratch: Tensor | None = None,
    ) -> Tensor:
        """`qkv` (N, 3C) is what the first level's projections `first` gave; `scratch` may be its memory."""
        slots = pooled.slots.to(x.device)
        if self.own:
            q, k, v = self._projected(x if self.mix else y, slots, scratch)
        else:
            q, k, v = (qkv if self.mix else linear(first, y, scratch)).chunk(3, dim=1)
            k, v = self.pooling(k, v, slots)
        q, k, v = (part.unflatten(1, (self.heads, -1)) for part in (q, k, v))  # (N, C) -> (N, H, D)
        z = attention(q, k, v, pooled.pairs, terms=biases, dropout=dropout).flatten(1)
        if not self.residual:
            return z
        return y.add_(z) if writes_over() else y + z

    def start_at_zero(self, qkv: nn.Linear) -> None:
        """Make Z zero: values are 0, queries and keys as the first level's, pooling weights equal.

        Values still learn at once, since their gradient does not depend on them; the rest follows.
        """
        query, key, _ = zip(qkv.weight.data.chunk(3), _bias(qkv).data.chunk(3), strict=True)
        zero = torch.zeros_like(query[0]), torch.zeros_like(query[1])
        for layer, (weight, bias) in ((self.query, query), (self.key, key), (self.value, zero)):
            layer.weight.data.copy_(weight)
            _bias(layer).data.copy_(bias)
        for weight in self.pooling.parameters():
            weight.data.zero_()

    def _projected(self, x: Tensor, slots: Slots, scratch: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of all rows, keys and values of the slots."""
        count = slots.rows.shape[0]
        rooms = (None, None, None) if scratch is None else scratch.chunk(3, dim=1)
        q, a, b = rooms
        into = None if a is None or b is None else (a[:count], b[:count])
        return linear(self.query, x, q), *self.pooling.projected(x, self.key, self.value, slots, into)


def _bias(layer: nn.Linear) -> Tensor:
    assert layer.bias is not None
    return layer.bias
