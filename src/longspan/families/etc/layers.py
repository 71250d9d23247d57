"""Attention of two streams, tokens and global tokens, as in ETC: one softmax for each stream over both."""

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from longspan.engine.call import AnyPlan, attention
from longspan.engine.terms import RelativeKeys, ScoreTable, Term
from longspan.nn.attention import fresh_dropout
from longspan.nn.encoder import int8_paths, residual
from longspan.nn.feed_forward import FeedForward
from longspan.nn.linear import linear, new_linear
from longspan.nn.norm import LayerNorm
from longspan.nn.rows import Scratch, by_rows, projected, writes_over

if TYPE_CHECKING:
    from longspan.families.etc.model import EtcConfig

PROJECTIONS = {"all": 3, "sides": 5, "none": 5}
"""Queries, keys and values that a row is projected to, by what is shared."""
SHARING = tuple(PROJECTIONS)
OTHERS_FIRST = [0, 3, 4, 1, 2]
"""What `from_global` gives, in the order of `from_long`: what tokens see before what global tokens see."""
RELATIVE_STD = 0.5
"""How the keys of labels begin, whatever other weights do: about as large as keys are."""


class StreamPlans(NamedTuple):
    """What the rows of each stream see of the rows of both; in tensors the long stream comes first."""

    long: AnyPlan
    globals: AnyPlan


class Relative(nn.Module):
    """Keys and biases of labels: a pair's score gets scale * (q . keys[label] + bias[label])."""

    def __init__(self, labels: int, heads: int, size: int) -> None:
        super().__init__()
        self.keys = nn.Parameter(torch.zeros(labels, heads, size))
        self.bias = nn.Parameter(torch.zeros(labels, heads))
        nn.init.trunc_normal_(self.keys, std=RELATIVE_STD, a=-2 * RELATIVE_STD, b=2 * RELATIVE_STD)

    def terms(self, scale: float) -> tuple[Term, ...]:
        """What `attention` is given."""
        return RelativeKeys(self.keys), ScoreTable(self.bias * scale)


class TwoStreamAttention(nn.Module):
    """x (N + G, C), the long stream and then the global one, to the context of each row, before `out`.

    `sharing` says which projections are the same. "all": queries, keys and values of all rows. "sides": the
    keys that tokens see, of whichever stream, those that global tokens see, and values likewise. "none": keys
    and values differ by who looks at whom. `relative` labels have keys and biases; 0: there are none.
    `scratch` is as in SelfAttention, for so many PROJECTIONS.
    """

    def __init__(self, config: "EtcConfig") -> None:
        super().__init__()
        width, heads, self.sharing = config.width, config.heads, config.sharing
        if self.sharing == "all":
            self.qkv = new_linear(width, 3 * width)
        elif self.sharing == "sides":
            self.long_query, self.global_query = new_linear(width, width), new_linear(width, width)
            self.long_kv, self.global_kv = new_linear(width, 2 * width), new_linear(width, 2 * width)
        else:
            # A query, the key and value seen by the own stream, and those seen by the other.
            self.from_long, self.from_global = new_linear(width, 5 * width), new_linear(width, 5 * width)
        self.out = new_linear(width, width)
        self.global_out = None if config.share_out else new_linear(width, width)
        self.long_relative, self.global_relative = (
            Relative(config.relative, heads, width // heads) if config.relative else None for _ in range(2)
        )
        self.heads, self.dropout = heads, config.attention_dropout

    def forward(self, x: Tensor, plans: StreamPlans, n: int, *, scratch: Scratch | None = None) -> Tensor:
        sides = zip(
            self._projected(x, n, projected(scratch)),
            plans,
            (self.long_relative, self.global_relative),
            strict=True,
        )
        contexts = [self._attend(qkv, pairs, relative) for qkv, pairs, relative in sides]
        return torch.cat(contexts).flatten(1)  # (N, H, D), (G, H, D) -> (N + G, C)

    def _attend(self, qkv: tuple[Tensor, ...], pairs: AnyPlan, relative: Relative | None) -> Tensor:
        q, k, v = qkv
        labelled = relative is not None and pairs.label_count is not None
        terms = relative.terms(q.shape[2] ** -0.5) if relative is not None and labelled else ()
        return attention(q, k, v, pairs, terms=terms, dropout=fresh_dropout(self))

    def _projected(self, x: Tensor, n: int, scratch: Tensor | None) -> tuple[tuple[Tensor, ...], ...]:
        """For each stream its queries, and the keys and values of all rows: (N or N + G, H, D)."""
        if self.sharing == "all":
            q, k, v = self._split(linear(self.qkv, x, scratch), 3)
            return (q[:n], k, v), (q[n:], k, v)
        if self.sharing == "sides":
            sides = (self.long_query, self.long_kv, x[:n]), (self.global_query, self.global_kv, x[n:])
            long, globals = (
                (*self._split(linear(query, own), 1), *self._split(linear(kv, x), 2))
                for query, kv, own in sides
            )
            return long, globals
        above = linear(self.from_global, x[n:]).view(x.shape[0] - n, 5, -1)[:, OTHERS_FIRST].flatten(1)
        if scratch is None:
            rows = torch.cat([linear(self.from_long, x[:n]), above])
        else:
            rows, scratch[n:] = scratch, above
            linear(self.from_long, x[:n], scratch[:n])
        q, long_k, long_v, global_k, global_v = self._split(rows, 5)
        return (q[:n], long_k, long_v), (q[n:], global_k, global_v)

    def _split(self, x: Tensor, parts: int) -> tuple[Tensor, ...]:
        return x.view(x.shape[0], parts, self.heads, -1).unbind(1)  # (N, parts * C) -> (N, H, D) each


class TwoStreamLayer(nn.Module):
    """As EncoderLayer, where each stream has its own norm behind the attention.

    The feed-forward layer and its norm are shared, unless `share_feed_forward` is False.
    """

    def __init__(self, config: "EtcConfig") -> None:
        super().__init__()
        width, inner, eps = config.width, config.feed_forward, config.norm_eps
        shared, act = config.share_feed_forward, config.activation
        self.attention = TwoStreamAttention(config)
        self.attention_norm, self.global_attention_norm = (LayerNorm(width, eps) for _ in range(2))
        self.feed_forward = FeedForward(width, inner, act)
        self.feed_forward_norm = LayerNorm(width, eps)
        self.global_feed_forward = None if shared else FeedForward(width, inner, act)
        self.global_feed_forward_norm = None if shared else LayerNorm(width, eps)
        self.dropout = config.dropout

    @property
    def int8_paths(self) -> tuple[str, ...]:
        """Its linear layers that may be computed in int8: all but those of global tokens alone."""
        own = ("qkv", "out", "long_query", "long_kv", "global_kv", "from_long")
        here = (f"attention.{name}" for name in own if hasattr(self.attention, name))
        return (*here, *int8_paths(self, "feed_forward"))

    def forward(self, x: Tensor, plans: StreamPlans, n: int, *, scratch: Scratch | None = None) -> Tensor:
        """The first `n` rows of x are those of the long stream."""
        context = self.attention(x, plans, n, scratch=scratch)
        streams = (by_rows(self._rest, x[:n], context[:n]), by_rows(self._global_rest, x[n:], context[n:]))
        return context if writes_over() else torch.cat(streams)  # context now holds them

    def _rest(self, x: Tensor, context: Tensor, into: Tensor | None) -> Tensor:
        """All that is done to each row of the long stream by itself."""
        dropout = self.dropout if self.training else 0.0
        x = self.attention_norm(residual(partial(linear, self.attention.out), context, x, dropout))
        y = residual(self.feed_forward, x, x, dropout, into)
        return self.feed_forward_norm(y, into)  # type: ignore[no-any-return]

    def _global_rest(self, x: Tensor, context: Tensor, into: Tensor | None) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        out = self.attention.global_out or self.attention.out
        inner = self.global_feed_forward or self.feed_forward
        norm = self.global_feed_forward_norm or self.feed_forward_norm
        x = self.global_attention_norm(residual(partial(linear, out), context, x, dropout))
        return norm(residual(inner, x, x, dropout, into), into)  # type: ignore[no-any-return]
