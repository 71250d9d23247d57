"""Self-attention over the pairs of a plan, and Longformer's second set of projections for global tokens."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from longspan.engine.call import attention
from longspan.engine.dropout import Dropout
from longspan.engine.labels import Labels
from longspan.engine.plan import Plan, plan
from longspan.engine.terms import ScoreTable
from longspan.layout import Layout
from longspan.nn.linear import Linear, wide
from longspan.nn.relative import ByHead
from longspan.nn.second_level import Farther, SecondLevel
from longspan.patterns.full import Full
from longspan.shapes import IntArray

Biases = tuple[ScoreTable, ...]
Kept = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class SelfAttention(nn.Module):
    """x (N, C) to the context of each row (N, C), before the output projection `out`.

    `biases` are added to scores, by the labels of the plan.
    `scratch` (N, 3C) holds queries, keys and values where nothing is differentiated: fresh memory is slow.
    `kept` takes the keys and values of these rows and gives those that are seen: with rows of earlier calls.
    """

    def __init__(
        self, width: int, heads: int, *, bias: bool = True, out_bias: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.qkv = Linear(width, 3 * width, bias=bias)
        self.out = Linear(width, width, bias=out_bias)
        self.heads, self.dropout = heads, dropout

    def forward(
        self,
        x: Tensor,
        pairs: Plan,
        biases: Biases = (),
        *,
        scratch: Tensor | None = None,
        kept: Kept | None = None,
    ) -> Tensor:
        q, k, v = self.qkv(x, scratch).view(len(x), 3, self.heads, -1).unbind(1)  # (N, 3C) -> (N, H, D)
        k, v = (k, v) if kept is None else kept(k, v)
        context = attention(q, k, v, pairs, terms=biases, dropout=fresh_dropout(self))
        return context.flatten(1)  # (N, H, D) -> (N, C)


class Group(NamedTuple):
    """Global rows that are computed alike."""

    rows: Tensor
    "(G,) the rows."
    keys: Tensor | None
    "The rows they see, None for all."
    pairs: Plan
    "From them to what they see; if absorbed, each row once for each head and the plan for one wide head."


@dataclass(frozen=True)
class GlobalRows:
    """The marked rows of a layout, by whether their document has few of them.

    With few (G * H < C) it is less work to carry the query through the key projection than to project all
    keys and values: q . (W x + b) = (W' q) . x + a constant of the row, which softmax does not see, and the
    sum of p (W x + b) is W (sum of p x) + b (sum of p). The choice is made for each document by itself.
    """

    few: Group | None
    many: Group | None

    @staticmethod
    def of(layout: Layout, heads: int, width: int, labels: Labels | None = None) -> "GlobalRows":
        """What `layout` marks; `labels` for plans whose pairs have biases."""
        document, marked = layout.sites.document, layout.marked_rows
        few = np.bincount(document[marked], minlength=layout.documents) * heads < width
        chosen = few[document[marked]]
        return GlobalRows(
            _absorbed(layout, marked[chosen], heads, labels),
            _projected(layout, marked[~chosen], heads, labels),
        )


def _absorbed(layout: Layout, rows: IntArray, heads: int, labels: Labels | None = None) -> Group | None:
    if not rows.size:
        return None
    site = layout.sites[np.repeat(rows, heads)]
    # Full() reads no positions, dropout does: each head of a row gets one of its own, and drops other keys.
    position = site.position * heads + np.tile(np.arange(heads, dtype=np.int32), rows.size)
    queries = Layout(replace(site, position=position, last=position), layout.lengths)
    by_head = None if labels is None else ByHead(labels, heads)
    return Group(torch.from_numpy(rows), None, plan(Full(), queries, layout, heads=1, labels=by_head))


def _projected(layout: Layout, rows: IntArray, heads: int, labels: Labels | None = None) -> Group | None:
    if not rows.size:
        return None
    seen = np.flatnonzero(np.isin(layout.sites.document, layout.sites.document[rows]))
    keys = None if seen.size == layout.size else torch.from_numpy(seen)
    among = layout if keys is None else layout.take(seen)
    pairs = plan(Full(), layout.take(rows), among, heads=heads, labels=labels)
    return Group(torch.from_numpy(rows), keys, pairs)


@dataclass(frozen=True)
class GlobalProjections:
    """What global rows see by projections of their own: linear layers with biases, and what drops pairs."""

    query: Linear | nn.Linear
    key: Linear | nn.Linear
    value: Linear | nn.Linear
    heads: int
    dropout: "Dropping"

    def put(self, context: Tensor, x: Tensor, marked: GlobalRows, biases: Biases = ()) -> Tensor:
        """`context` (N, C) with the marked rows of x (N, C) in their places; without gradients, itself."""
        for group, read in ((marked.few, self._absorbed), (marked.many, self._projected)):
            if group is not None:
                rows = group.rows.to(x.device)
                put = context.index_copy if torch.is_grad_enabled() else context.index_copy_
                context = put(0, rows, read(x, x[rows], group, biases).to(context.dtype))
        return context

    def _projected(self, x: Tensor, marked: Tensor, group: Group, biases: Biases) -> Tensor:
        """All keys through the global projections."""
        seen = x if group.keys is None else x[group.keys.to(x.device)]
        q, k, v = (
            linear(rows).view(len(rows), self.heads, -1)  # (N, C) -> (N, H, D)
            for linear, rows in ((self.query, marked), (self.key, seen), (self.value, seen))
        )
        return attention(q, k, v, group.pairs, terms=biases, dropout=fresh_dropout(self.dropout)).flatten(1)

    def _absorbed(self, x: Tensor, marked: Tensor, group: Group, biases: Biases) -> Tensor:
        """The queries through the key projection, the result through the value projection."""
        rows, width = marked.shape
        size = width // self.heads
        q = self.query(marked).view(rows, self.heads, size)
        key, value = (wide(p.weight).view(self.heads, size, width) for p in (self.key, self.value))
        carried = torch.einsum("ghd,hdc->ghc", wide(q), key).to(x.dtype).reshape(rows * self.heads, 1, width)
        seen, dropout = x.unsqueeze(1), fresh_dropout(self.dropout)  # (N, C) -> (N, 1, C): one wide head
        by_head = tuple(ScoreTable(one.table.t().reshape(-1, 1)) for one in biases)  # (L, H) -> (H * L, 1)
        mean = attention(carried, seen, seen, group.pairs, scale=size**-0.5, terms=by_head, dropout=dropout)
        context = (
            torch.einsum("ghc,hdc->ghd", wide(mean).view(rows, self.heads, width), value)
            .flatten(1)
            .to(x.dtype)
        )
        bias, unseen = self.value.bias, self.key.bias
        assert bias is not None
        assert unseen is not None
        context = context + 0 * unseen  # softmax does not see it: its gradient is 0, but it has one
        if dropout is None:
            return context + bias
        ones = x.new_ones(1, 1, 1).expand(seen.shape)
        kept = attention(carried, seen, ones, group.pairs, scale=size**-0.5, terms=by_head, dropout=dropout)
        kept = kept[:, 0, :1]
        return context + (kept.view(rows, self.heads, 1) * bias.view(self.heads, size)).flatten(1)


class LongformerAttention(nn.Module):
    """Local rows by one set of projections, global rows by another; each row is computed once.

    With a `second` level, which a Poolingformer gives to some layers, every row then looks farther.
    """

    def __init__(self, width: int, heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.qkv = Linear(width, 3 * width)
        self.global_query, self.global_key, self.global_value = (Linear(width, width) for _ in range(3))
        self.out = Linear(width, width)
        self.heads, self.dropout = heads, dropout
        self.second: SecondLevel | None = None

    def forward(
        self,
        x: Tensor,
        pairs: Plan,
        marked: GlobalRows,
        biases: Biases = (),
        farther: Farther | None = None,
        *,
        scratch: Tensor | None = None,
    ) -> Tensor:
        qkv = self.qkv(x, scratch)
        q, k, v = qkv.view(len(x), 3, self.heads, -1).unbind(1)  # (N, 3C) -> (N, H, D)
        context = attention(q, k, v, pairs, terms=biases, dropout=fresh_dropout(self))
        apart = GlobalProjections(self.global_query, self.global_key, self.global_value, self.heads, self)
        context = apart.put(context.flatten(1), x, marked, biases)  # (N, H, D) -> (N, C)
        if self.second is not None:
            context = self.second(
                x, context, qkv, self.qkv, farther, biases, dropout=fresh_dropout(self), scratch=scratch
            )
        return context

    def copy_local_to_global(self) -> None:
        """Start the global projections from the local ones (Longformer, section 3.1)."""
        projections = self.global_query, self.global_key, self.global_value
        for name in ("weight", "bias"):
            for projection, local in zip(projections, getattr(self.qkv, name).chunk(3), strict=True):
                getattr(projection, name).data.copy_(local.data)


class Dropping(Protocol):
    """A module that drops pairs of its attention in training."""

    training: bool
    dropout: float


def fresh_dropout(module: Dropping) -> Dropout | None:
    """Dropout with a seed drawn from torch's generator, in training; None otherwise."""
    if not module.training or module.dropout == 0.0:
        return None
    return Dropout(module.dropout, int(torch.randint(2**63 - 1, ())))
