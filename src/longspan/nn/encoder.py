"""One encoder layer, its norms after the residuals or before the blocks."""

from functools import partial
from typing import Any, NamedTuple, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan.engine.call import AnyPlan
from longspan.engine.split import split
from longspan.nn.attention import Biases, CacheUpdate
from longspan.nn.linear import linear
from longspan.nn.norm import LayerNorm, Norm
from longspan.nn.rotary import RotaryAttention, Rotations
from longspan.nn.rows import ROWS, Scratch, apart, by_rows


class LayerConfig(NamedTuple):
    """What the layers of a model have in common."""

    width: int
    act: str
    eps: float
    dropout: float
    activation_dropout: float = 0.0
    norm_first: bool = False
    norm: Norm = LayerNorm
    feed_forward_dropout: float | None = None
    "After the feed-forward block; None: `dropout`, as after the attention."

    def new_norm(self) -> nn.Module:
        """A norm of hidden states."""
        return self.norm(self.width, self.eps)


class Step(Protocol):
    """(x, into, plus=) to a block's result plus something, written to `into` where that is given."""

    def __call__(self, x: Tensor, into: Tensor | None = None, *, plus: Tensor | None = None) -> Tensor: ...


class EncoderLayer(nn.Module):
    """x (N, C) -> norm(x + out(attention(x))) -> norm(x + feed_forward(x)).

    With `norm_first` x -> x + out(attention(norm(x))) -> x + feed_forward(norm(x)); the `final` layer has one
    more norm at its end, and the attention's may be left out (`norm_attention`).
    """

    def __init__(
        self,
        like: LayerConfig,
        attention: nn.Module,
        feed_forward: nn.Module,
        *,
        norm_attention: bool = True,
        final: bool = False,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = like.new_norm() if norm_attention else None
        self.feed_forward = feed_forward
        self.feed_forward_norm = like.new_norm()
        self.closing_norm = like.new_norm() if like.norm_first and final else None
        self.dropout, self.norm_first = like.dropout, like.norm_first
        rate = like.feed_forward_dropout
        self.feed_forward_dropout = like.dropout if rate is None else rate

    @property
    def int8_paths(self) -> tuple[str, ...]:
        """Its linear layers that may be computed in int8."""
        return int8_paths(self, "attention", "feed_forward")

    def forward(
        self,
        x: Tensor,
        *inputs: Any,
        scratch: Scratch | None = None,
        cache: CacheUpdate | None = None,
        rows: Tensor | None = None,
    ) -> Tensor:
        """`inputs` are what the attention takes beside x: its plan, and perhaps global rows and biases.

        `cache` is for attentions that take one: rows that came before. With `rows`, the result is that of
        these alone.
        """
        if scratch is not None and scratch.context is x:
            return self._in_place(x, *inputs, scratch=scratch, rows=rows)
        before = {} if cache is None else {"cache": cache}
        room = None if scratch is None else scratch.context
        context = self.attention(self.normed(x, room), *inputs, scratch=scratch, **before)
        if rows is not None:
            x, context, room = x[rows], context[rows], None
        if context.shape[1] == x.shape[1]:
            return by_rows(partial(self._rest, scratch), x, context)
        return by_rows(partial(self._apart, scratch), x, context, apart(x, context, room))

    @property
    def key_columns(self) -> int | None:
        """Columns of keys and values, if these are all it needs of all rows at once; None if they are not."""
        columns: int | None = getattr(self.attention, "key_columns", None)
        return columns

    def _in_place(
        self,
        x: Tensor,
        pairs: AnyPlan,
        turn: Rotations,
        biases: Biases = (),
        *,
        scratch: Scratch,
        rows: Tensor | None,
    ) -> Tensor:
        """The same, written over x. First come all keys and values, then the rest, some rows at a time."""
        attention = cast(RotaryAttention, self.attention)
        for start in range(0, len(x), ROWS):
            some = slice(start, start + ROWS)
            normed = self._piece_normed(x[some], scratch)
            attention.key_values(normed, turn.of(some), scratch.projected[some])
        keys = attention.split_keys(scratch.projected)
        chosen = None if rows is None else x.new_empty(len(rows), x.shape[1])
        for some, part in split(pairs, ROWS):
            piece = x[some]
            normed = self._piece_normed(piece, scratch)
            context = attention.of_queries(normed, keys, part, turn.of(some), biases, scratch)
            if rows is None or chosen is None:
                self._rest(scratch, piece, context, piece)
                continue
            here = torch.nonzero((rows >= some.start) & (rows < some.stop)).flatten()
            there = rows[here] - some.start
            chosen[here] = self._rest(scratch, piece[there], context[there], None)
        return x if chosen is None else chosen

    def _piece_normed(self, x: Tensor, scratch: Scratch) -> Tensor:
        return self.normed(x, scratch.piece("hidden", *x.shape))

    def normed(self, x: Tensor, into: Tensor | None = None) -> Tensor:
        """What the attention is given of x."""
        return self.attention_norm(x, into) if self.norm_first and self.attention_norm is not None else x

    def _rest(self, scratch: Scratch | None, x: Tensor, context: Tensor, into: Tensor | None) -> Tensor:
        """Everything that is computed row by row."""
        rates = (self.dropout, self.feed_forward_dropout) if self.training else (0.0, 0.0)
        hidden = None if scratch is None else scratch.piece("hidden", *x.shape)
        x = residual(partial(linear, self.attention.get_submodule("out")), context, x, rates[0], hidden)
        block = self.feed_forward if scratch is None else partial(self.feed_forward, scratch=scratch)
        if self.norm_first:
            x = residual(block, self.feed_forward_norm(x, into), x, rates[1], into)
            return x if self.closing_norm is None else self.closing_norm(x, into)
        x = x if self.attention_norm is None else self.attention_norm(x, hidden)
        y = residual(block, x, x, rates[1], into)
        return self.feed_forward_norm(y, into)  # type: ignore[no-any-return]

    def _apart(
        self, scratch: Scratch | None, x: Tensor, context: Tensor, room: Tensor, into: Tensor | None
    ) -> Tensor:
        """The same where heads together are wider or narrower than x, whose place the context cannot take."""
        return self._rest(scratch, x, context, into)


def int8_paths(layer: nn.Module, *blocks: str) -> tuple[str, ...]:
    """The linear layers of some blocks of a layer that may be computed in int8."""
    return tuple(
        f"{block}.{name}"
        for block in blocks
        for name in getattr(layer.get_submodule(block), "int8_layers", ())
    )


def residual(step: Step, x: Tensor, rest: Tensor, dropout: float, into: Tensor | None = None) -> Tensor:
    """step(x) + rest, written to `into` where that is given; dropout comes before the sum."""
    if not dropout:
        return step(x, into, plus=rest)
    y = F.dropout(step(x), dropout).add_(rest)
    return y if into is None else into.copy_(y)
