"""A decoder layer: its rows attend to their own past, and to everything the encoder has read."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from torch import Tensor, nn

from longspan.engine.call import AnyPlan, attention
from longspan.nn.attention import SelfAttention, fresh_dropout
from longspan.nn.encoder import LayerConfig, Step, residual
from longspan.nn.feed_forward import FeedForward
from longspan.nn.linear import linear, new_linear
from longspan.nn.norm import LayerNorm

KeyValues = tuple[Tensor, Tensor]
"""Keys and values (K, H, D)."""
ROOM = 2**14
"""Rows that a cache takes room for at once: 16 texts of 1,024 tokens."""


class CrossAttention(nn.Module):
    """x (N, C) to the context of each row (N, C), before `out`, from keys and values of other rows."""

    def __init__(self, width: int, heads: int, *, bias: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        self.query = new_linear(width, width, bias=bias)
        self.kv = new_linear(width, 2 * width, bias=bias)
        self.out = new_linear(width, width, bias=bias)
        self.heads, self.dropout = heads, dropout

    def key_values(self, memory: Tensor) -> KeyValues:
        """The keys and values of the encoder's rows (K, C), computed once for all steps."""
        k, v = (
            linear(self.kv, memory).view(memory.shape[0], 2, self.heads, -1).unbind(1)
        )  # (K, 2C) -> (K, H, D)
        return k, v

    def forward(self, x: Tensor, key_values: KeyValues, pairs: AnyPlan) -> Tensor:
        q = linear(self.query, x).view(x.shape[0], self.heads, -1)  # (N, C) -> (N, H, D)
        return attention(q, *key_values, pairs, dropout=fresh_dropout(self)).flatten(1)


class KVCache:
    """Keys and values of the rows that a layer has decoded: they stay in place, new ones are appended.

    It has room for `most` rows from the start, as memory costs nothing until it is written to; where that is
    more than ROOM, the room doubles when it is full.
    """

    def __init__(self, most: int) -> None:
        self._room: Tensor | None = None
        self._count, self._most = 0, most

    def update(self, k: Tensor, v: Tensor) -> KeyValues:
        """All keys and values so far (K, H, D), the new ones last."""
        begin, self._count = self._count, self._count + len(k)
        if self._room is None or self._count > self._room.shape[1]:
            size = max(self._count, min(self._most, max(ROOM, 2 * self._count)))
            room = k.new_empty(2, size, *k.shape[1:])
            if self._room is not None:
                room[:, :begin] = self._room[:, :begin]
            self._room = room
        self._room[0, begin : self._count], self._room[1, begin : self._count] = k, v
        keys, values = self._room[:, : self._count]
        return keys, values


class DecoderPlans(NamedTuple):
    """What the rows of a step attend to."""

    causal: AnyPlan
    "Their own past."
    cross: AnyPlan
    "The rows that the encoder read."


class DecoderLayer(nn.Module):
    """x (N, C) through self-attention, cross-attention and feed-forward, each with a residual and a norm.

    Post-norm, or pre-norm (`norm_first`), where the `final` layer has one more norm.
    """

    def __init__(
        self,
        like: LayerConfig,
        heads: int,
        inner: int,
        *,
        attention_dropout: float = 0.0,
        bias: bool = True,
        final: bool = False,
    ) -> None:
        super().__init__()
        width, norms = like.width, [LayerNorm(like.width, like.eps) for _ in range(3)]
        self.attention = SelfAttention(width, heads, bias=bias, out_bias=bias, dropout=attention_dropout)
        self.cross = CrossAttention(width, heads, bias=bias, dropout=attention_dropout)
        self.feed_forward = FeedForward(width, inner, like.act, dropout=like.activation_dropout)
        self.attention_norm, self.cross_norm, self.feed_forward_norm = norms
        self.closing_norm = LayerNorm(width, like.eps) if like.norm_first and final else None
        self.dropout, self.norm_first = like.dropout, like.norm_first

    def forward(
        self, x: Tensor, memory: Tensor | KeyValues, plans: DecoderPlans, cache: KVCache | None = None
    ) -> Tensor:
        """`memory` is the encoder's rows (K, C), or their keys and values; `cache` holds rows decoded before,
        and gets these.
        """
        key_values = self.cross.key_values(memory) if isinstance(memory, Tensor) else memory
        look_back = partial(self.attention, pairs=plans.causal, cache=None if cache is None else cache.update)
        x = self._block(x, self.attention_norm, partial(linear, self.attention.out), look_back)
        out = partial(linear, self.cross.out)
        x = self._block(x, self.cross_norm, out, lambda y: self.cross(y, key_values, plans.cross))
        x = self._block(x, self.feed_forward_norm, self.feed_forward, lambda y: y)
        return x if self.closing_norm is None else self.closing_norm(x)

    def _block(self, x: Tensor, norm: LayerNorm, out: Step, context: Callable[[Tensor], Tensor]) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        y = residual(out, context(norm(x) if self.norm_first else x), x, dropout)
        return y if self.norm_first else norm(y)
