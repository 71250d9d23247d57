"""Self-attention over the pairs of a plan, and Longformer's second set of projections for global tokens."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from longspan.engine.call import attention
from longspan.engine.dropout import Dropout
from longspan.engine.plan import Plan, plan
from longspan.layout import Layout
from longspan.nn.rows import by_rows
from longspan.patterns.full import Full


class SelfAttention(nn.Module):
    """x (N, C) to the context of each row (N, C), before the output projection `out`."""

    def __init__(self, width: int, heads: int, *, bias: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width)
        self.heads, self.dropout = heads, dropout

    def forward(self, x: Tensor, pairs: Plan) -> Tensor:
        q, k, v = by_rows(self.qkv, x).view(len(x), 3, self.heads, -1).unbind(1)  # (N, 3C) -> (N, H, D)
        return attention(q, k, v, pairs, dropout=fresh_dropout(self)).flatten(1)  # (N, H, D) -> (N, C)


class Group(NamedTuple):
    """Global rows that are computed alike."""

    rows: Tensor
    "(G,) the rows."
    keys: Tensor | None
    "The rows they see, None for all."
    pairs: Plan
    "From them to what they see."
    absorbed: Plan | None
    "The same with each row once for each head, where keys are not projected."


@dataclass(frozen=True)
class GlobalRows:
    """The marked rows of a layout, by whether their document has few of them.

    With few (G * H < C) it is less work to carry the query through the key projection than all keys:
    q . (W x) = (W' q) . x, and the sum of p (W x + b) is W (sum of p x) + b. This is exact where no
    probability is dropped. The choice is made for each document, whatever its batch mates.
    """

    few: Group | None
    many: Group | None

    @staticmethod
    def of(layout: Layout, heads: int, width: int, *, absorb: bool) -> "GlobalRows":
        """What `layout` marks; absorb=False computes all of them through projected keys."""
        site, marked = layout.sites, layout.marked_rows
        share = np.bincount(site.document[marked], minlength=layout.documents)
        few = (share * heads < width) & absorb
        chosen = few[site.document[marked]]
        return GlobalRows(
            _group(layout, marked[chosen], None, heads, absorb=True),
            _group(layout, marked[~chosen], np.flatnonzero(~few[site.document]), heads, absorb=False),
        )


def _group(layout: Layout, rows: np.ndarray, keys: np.ndarray | None, heads: int, *, absorb: bool) -> Group | None:
    if not rows.size:
        return None
    everything = keys is None or keys.size == layout.size
    seen = layout if everything else layout.take(keys)
    return Group(
        torch.from_numpy(rows),
        None if everything or keys is None else torch.from_numpy(keys),
        plan(Full(), layout.take(rows), seen, heads=heads),
        plan(Full(), layout.take(np.repeat(rows, heads)), seen, heads=1) if absorb else None,
    )


class LongformerAttention(nn.Module):
    """Local rows by one set of projections, global rows by another; each row is computed once."""

    def __init__(self, width: int, heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.global_query, self.global_key, self.global_value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.heads, self.dropout = heads, dropout

    def forward(self, x: Tensor, pairs: Plan, marked: GlobalRows) -> Tensor:
        q, k, v = by_rows(self.qkv, x).view(len(x), 3, self.heads, -1).unbind(1)  # (N, 3C) -> (N, H, D)
        context = attention(q, k, v, pairs, dropout=fresh_dropout(self)).flatten(1)  # (N, H, D) -> (N, C)
        for group, read in ((marked.few, self._absorbed), (marked.many, self._projected)):
            if group is not None:
                rows = group.rows.to(x.device)
                context = context.index_copy(0, rows, read(x, x[rows], group))
        return context

    def copy_local_to_global(self) -> None:
        """Start the global projections from the local ones (Longformer, section 3.1)."""
        projections = self.global_query, self.global_key, self.global_value
        for name in ("weight", "bias"):
            for projection, local in zip(projections, getattr(self.qkv, name).chunk(3), strict=True):
                getattr(projection, name).data.copy_(local.data)

    def _projected(self, x: Tensor, marked: Tensor, group: Group) -> Tensor:
        """All keys through the global projections."""
        seen = x if group.keys is None else x[group.keys.to(x.device)]
        q, k, v = (
            by_rows(project, rows).view(len(rows), self.heads, -1)  # (N, C) -> (N, H, D)
            for project, rows in ((self.global_query, marked), (self.global_key, seen), (self.global_value, seen))
        )
        return attention(q, k, v, group.pairs, dropout=fresh_dropout(self)).flatten(1)

    def _absorbed(self, x: Tensor, marked: Tensor, group: Group) -> Tensor:
        """The queries through the key projection, the result through the value projection."""
        assert group.absorbed is not None
        rows, width = marked.shape
        size = width // self.heads
        q = self.global_query(marked).view(rows, self.heads, size)
        key, value = (p.weight.view(self.heads, size, width) for p in (self.global_key, self.global_value))
        carried = torch.einsum("ghd,hdc->ghc", q, key).reshape(rows * self.heads, 1, width)
        seen = x.unsqueeze(1)  # (N, C) -> (N, 1, C): one wide head
        mean = attention(carried, seen, seen, group.absorbed, scale=size**-0.5)
        mixed = torch.einsum("ghc,hdc->ghd", mean.view(rows, self.heads, width), value)
        return mixed.flatten(1) + self.global_value.bias


def fresh_dropout(module: SelfAttention | LongformerAttention) -> Dropout | None:
    """Dropout with a seed drawn from torch's generator, in training; None otherwise."""
    if not module.training or module.dropout == 0.0:
        return None
    return Dropout(module.dropout, int(torch.randint(2**63 - 1, ())))
