"""Longformer's attention: global tokens have projections of their own (Beltagy et al. 2020, section 3)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from longspan.engine.call import AnyPlan, attention
from longspan.engine.labels import Labels
from longspan.engine.plan import plan
from longspan.engine.terms import ScoreTable
from longspan.errors import FARTHEST
from longspan.families.attention_spec import AttentionSpec
from longspan.layout import Layout
from longspan.nn.attention import Biases, Dropping, fresh_dropout
from longspan.nn.linear import linear, matrix, new_linear, wide
from longspan.nn.relative import ByHead
from longspan.nn.rows import Scratch, projected, share, writes_over
from longspan.shapes import IntArray


class Group(NamedTuple):
    """Global rows that are computed alike."""

    rows: Tensor
    "(G,) the rows."
    keys: Tensor | None
    "The rows they see, None for all."
    pairs: AnyPlan
    "From them to what they see; if absorbed, each row once for each head and the plan for one wide head."


class GlobalRows(NamedTuple):
    """The marked rows of a layout, by whether their document has few of them.

    With few (G * H < C) it is less work to carry the query through the key projection than to project all
    keys and values: q . (W x + b) = (W' q) . x + a constant of the row, which softmax does not see, and the
    sum of p (W x + b) is W (sum of p x) + b (sum of p). The choice is made for each document by itself.
    """

    few: Group | None
    many: Group | None

    @staticmethod
    def of(
        specs: Sequence[AttentionSpec], heads: int, width: int, labels: Labels | None = None
    ) -> "GlobalRows":
        """The rows of the layer's attention from marked rows to all, if it has one."""
        if not specs:
            return GlobalRows(None, None)
        (spec,) = specs
        document, marked = spec.keys.sites.document, spec.keys.marked_rows
        few = np.bincount(document[marked], minlength=spec.keys.documents) * heads < width
        chosen, how = few[document[marked]], (heads, labels)
        return GlobalRows(_absorbed(spec, marked[chosen], *how), _projected(spec, marked[~chosen], *how))


def _absorbed(spec: AttentionSpec, rows: IntArray, heads: int, labels: Labels | None) -> Group | None:
    if not rows.size:
        return None
    site = spec.keys.sites[np.repeat(rows, heads)]
    # The pattern reads no positions, dropout does: each head of a row gets its own, and drops other keys.
    position = site.position.astype(np.int64) * heads + np.tile(np.arange(heads), rows.size)
    position = (position % (FARTHEST + 1)).astype(np.int32)
    queries = Layout(replace(site, position=position, last=position), spec.keys.lengths)
    by_head = None if labels is None else ByHead(labels, heads)
    pairs = plan(spec.pattern, queries, spec.keys, heads=1, labels=by_head)
    return Group(torch.from_numpy(rows), None, pairs)


def _projected(spec: AttentionSpec, rows: IntArray, heads: int, labels: Labels | None) -> Group | None:
    if not rows.size:
        return None
    layout, document = spec.keys, spec.keys.sites.document
    seen = np.flatnonzero(np.isin(document, document[rows]))
    keys = None if seen.size == layout.size else torch.from_numpy(seen)
    among = layout if keys is None else layout.take(seen)
    pairs = plan(spec.pattern, layout.take(rows), among, heads=heads, labels=labels)
    return Group(torch.from_numpy(rows), keys, pairs)


@dataclass(frozen=True)
class GlobalProjections:
    """What global rows see by projections of their own: linear layers with biases, and what drops pairs."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    heads: int
    dropout: Dropping

    def write(self, context: Tensor, x: Tensor, rows: GlobalRows, biases: Biases = ()) -> Tensor:
        """`context` (N, C) with the global rows of x (N, C) written over; in place without gradients."""
        for group, read in ((rows.few, self._absorbed), (rows.many, self._projected)):
            if group is not None:
                at = group.rows.to(x.device)
                copy = context.index_copy_ if writes_over() else context.index_copy
                context = copy(0, at, read(x, x[at], group, biases).to(context.dtype))
        return context

    def _projected(self, x: Tensor, marked: Tensor, group: Group, biases: Biases) -> Tensor:
        """All keys through the global projections."""
        seen = x if group.keys is None else x[group.keys.to(x.device)]
        q, k, v = (
            linear(layer, rows).view(rows.shape[0], self.heads, -1)  # (N, C) -> (N, H, D)
            for layer, rows in ((self.query, marked), (self.key, seen), (self.value, seen))
        )
        return attention(q, k, v, group.pairs, terms=biases, dropout=fresh_dropout(self.dropout)).flatten(1)

    def _absorbed(self, x: Tensor, marked: Tensor, group: Group, biases: Biases) -> Tensor:
        """The queries through the key projection, the result through the value projection."""
        rows, width = marked.shape
        size = int(width) // self.heads  # an exporter would make it a tensor
        q = linear(self.query, marked).view(rows, self.heads, size)
        (key, unseen), (value, bias) = (matrix(layer, x) for layer in (self.key, self.value))
        key, value = (wide(weight).view(self.heads, size, width) for weight in (key, value))
        carried = torch.einsum("ghd,hdc->ghc", wide(q), key).to(x.dtype).reshape(rows * self.heads, 1, width)
        seen, dropout = x.unsqueeze(1), fresh_dropout(self.dropout)  # (N, C) -> (N, 1, C): one wide head
        by_head = tuple(ScoreTable(one.table.t().reshape(-1, 1)) for one in biases)  # (L, H) -> (H * L, 1)
        mean = attention(carried, seen, seen, group.pairs, scale=size**-0.5, terms=by_head, dropout=dropout)
        mean = wide(mean).view(rows, self.heads, width)
        context = torch.einsum("ghc,hdc->ghd", mean, value).flatten(1).to(x.dtype)
        assert bias is not None
        assert unseen is not None
        context = context + 0 * unseen  # softmax does not see it: its gradient is 0, but it has one
        if dropout is None:
            return context + bias
        ones = x.new_ones(1, 1, 1).expand(seen.shape)
        kept = attention(carried, seen, ones, group.pairs, scale=size**-0.5, terms=by_head, dropout=dropout)
        kept = kept[:, 0, :1]
        return context + (kept.view(rows, self.heads, 1) * bias.view(self.heads, size)).flatten(1)


class Unused(torch.autograd.Function):
    """x itself; the weights beside it take no part, and have a gradient of 0."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *weights: Tensor) -> Tensor:
        ctx.save_for_backward(*weights)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        return grad, *(torch.zeros_like(weight) for weight in ctx.saved_tensors)


class LongformerAttention(nn.Module):
    """Local rows by one set of projections, global rows by another; each row is computed once."""

    int8_layers: tuple[str, ...] = ("qkv", "out")  # the global projections are read as matrices

    def __init__(self, width: int, heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.qkv = new_linear(width, 3 * width)
        self.global_query, self.global_key, self.global_value = (new_linear(width, width) for _ in range(3))
        self.out = new_linear(width, width)
        self.heads, self.dropout = heads, dropout

    def forward(
        self,
        x: Tensor,
        pairs: AnyPlan,
        global_rows: GlobalRows,
        biases: Biases = (),
        *,
        scratch: Scratch | None = None,
    ) -> Tensor:
        q, k, v = (
            linear(self.qkv, x, projected(scratch)).view(x.shape[0], 3, self.heads, -1).unbind(1)
        )  # (N, 3C) -> (N, H, D)
        free = scratch is not None and not share(x, scratch.context)  # global rows still read x
        out = scratch.for_heads(self.heads, x.shape[1]) if scratch is not None and free else None
        context = attention(q, k, v, pairs, terms=biases, dropout=fresh_dropout(self), out=out)
        return self.with_global_rows(context.flatten(1), x, global_rows, biases)  # (N, H, D) -> (N, C)

    def with_global_rows(self, context: Tensor, x: Tensor, rows: GlobalRows, biases: Biases) -> Tensor:
        """`context` (N, C) with the global rows of x written over.

        Without any, the global projections have a gradient of 0 all the same: DistributedDataParallel waits
        for a gradient of every parameter.
        """
        projections = self.global_query, self.global_key, self.global_value
        if rows.few is None and rows.many is None:
            weights = [one for layer in projections for one in layer.parameters() if one.requires_grad]
            return Unused.apply(context, *weights) if torch.is_grad_enabled() else context  # type: ignore[no-untyped-call]
        return GlobalProjections(*projections, self.heads, self).write(context, x, rows, biases)

    def copy_local_to_global(self) -> None:
        """Start the global projections from the local ones (section 3.1)."""
        projections = self.global_query, self.global_key, self.global_value
        for name in ("weight", "bias"):
            for projection, local in zip(projections, getattr(self.qkv, name).chunk(3), strict=True):
                getattr(projection, name).data.copy_(local.data)
