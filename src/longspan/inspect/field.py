"""The receptive field: what a token can know of after each layer, exact through the plans."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from longspan.engine.plan import Plan
from longspan.engine.tiling import TILE
from longspan.families.attention_spec import AttentionSpec, LayerSpecs
from longspan.layout import Layout
from longspan.shapes import BoolArray, IntArray

Nodes = dict[Layout, IntArray]
"""For each layout that takes part in an attention, the nodes that its rows are."""


@dataclass(frozen=True)
class ReceptiveField:
    """What the token in the middle of the longest document can know of.

    Nodes are the rows of the layout, and behind them the rows of a second stream if there is one.
    """

    layout: Layout
    start: BoolArray
    "(nodes,): the token itself."
    known: BoolArray
    "(layers, nodes): what it knows of after 1, 2, ... layers."

    @property
    def tokens(self) -> IntArray:
        """(layers,): of how many tokens it knows after each layer."""
        counts: IntArray = self.known[:, : self.layout.size].sum(axis=1)
        return counts

    @cached_property
    def complete(self) -> int | None:
        """After how many layers it knows of its whole document; None: never."""
        layers = np.flatnonzero(self.tokens == self.reachable)
        return int(layers[0]) + 1 if layers.size else None

    @property
    def reachable(self) -> int:
        """How many tokens its document has."""
        site, row = self.layout.sites, self.start[: self.layout.size]
        mates = site.exists & np.isin(site.document, site.document[row])
        return int(mates.sum())

    @property
    def second_stream(self) -> int:
        """How many rows stand beside the tokens in a stream of their own."""
        return self.start.size - self.layout.size


def receptive_field(calls: LayerSpecs, layout: Layout, *, heads: int) -> ReceptiveField:
    """What the token in the middle knows of after each layer, by any head and through the residuals.

    >>> from longspan.families.bert.model import BertConfig
    >>> layout = Layout.packed([100])
    >>> receptive_field(BertConfig(layers=3, radius=2).attention(layout), layout, heads=12).tokens
    array([ 5,  9, 13])
    """
    nodes = nodes_of(calls, layout)
    start = np.zeros(_size(nodes, layout), bool)
    start[: layout.size] = _middle(layout)
    known = np.zeros((len(calls), start.size), bool)
    for depth in range(len(calls)):
        if depth and len(set(calls[: depth + 1])) == 1:  # alike so far: one layer more is one step more
            known[depth] = _before(calls[depth], known[depth - 1], nodes, heads)
            continue
        known[depth] = start
        for layer in reversed(calls[: depth + 1]):
            known[depth] = _before(layer, known[depth], nodes, heads)
    return ReceptiveField(layout, start, known)


def seen_alone(call: AttentionSpec, layout: Layout, nodes: Nodes, *, heads: int) -> int:
    """How many tokens a query in the middle knows of by one attention alone, itself included."""
    start = np.zeros(_size(nodes, layout), bool)
    start[nodes[call.queries][_middle(call.queries)]] = True
    return int((start | _seen_nodes(call, start, nodes, heads))[: layout.size].sum())


def nodes_of(calls: LayerSpecs, layout: Layout) -> Nodes:
    """The nodes of every layout of the attentions; pooled slots have none, they stand for several.

    A layout's rows are those of `layout` in the same number (perhaps divided otherwise, as into blocks) or
    some of them; what a joined layout has behind them is the second stream.
    """
    every = [call for layer in calls for call in layer]
    layouts = dict.fromkeys(
        [call.queries for call in every] + [call.keys for call in every if not call.pooled]
    )
    joined = next((other for other in layouts if other.size > layout.size), layout)
    stream = _places(joined.take(np.arange(layout.size, joined.size)))
    row_at = {place: row for row, place in enumerate(_places(layout))}
    nodes: Nodes = {}
    for other in layouts:
        if stream and other != layout and _places(other) == stream:
            nodes[other] = layout.size + np.arange(other.size)
        elif other.size >= layout.size:
            nodes[other] = np.arange(other.size)
        else:
            nodes[other] = np.asarray([row_at.get(place, 0) for place in _places(other)], np.int64)
    return nodes


def _size(nodes: Nodes, layout: Layout) -> int:
    return max([layout.size, *(int(rows.max(initial=-1)) + 1 for rows in nodes.values())])


def _places(layout: Layout) -> list[tuple[int, int]]:
    site = layout.sites
    return list(zip(site.document.tolist(), site.position.tolist(), strict=True))


def _middle(layout: Layout) -> BoolArray:
    """(N,): the row in the middle of the longest document, an unmarked one if there is one."""
    site, middle = layout.sites, np.zeros(layout.size, bool)
    if layout.documents:
        mates = site.exists & (site.document == layout.lengths.argmax())
        unmarked = mates & ~site.marked
        rows = np.flatnonzero(unmarked if unmarked.any() else mates)
        middle[rows[rows.size // 2 : rows.size // 2 + 1]] = True
    return middle


def _before(layer: tuple[AttentionSpec, ...], known: BoolArray, nodes: Nodes, heads: int) -> BoolArray:
    """The nodes of a layer's input that what is `known` of its output depends on."""
    late = [call for call in layer[1:] if call.pooled]  # they read what the calls before them returned
    for call in reversed(late):
        known = known | _seen_nodes(call, known, nodes, heads)
    early = [_seen_nodes(call, known, nodes, heads) for call in layer if call not in late]
    together: BoolArray = np.logical_or.reduce([known, *early])
    return together


def _seen_nodes(call: AttentionSpec, known: BoolArray, nodes: Nodes, heads: int) -> BoolArray:
    """The nodes that the known ones see by one attention."""
    keys = _seen_keys(call.plan(heads), known[nodes[call.queries]])
    first, last = _slots(call) if call.pooled else (nodes[call.keys],) * 2
    edges = np.zeros(known.size + 1, np.int64)
    np.add.at(edges, first[keys], 1)
    np.add.at(edges, last[keys] + 1, -1)
    return np.cumsum(edges)[:-1] > 0


def _slots(call: AttentionSpec) -> tuple[IntArray, IntArray]:
    """The first and the last row that each pooled slot covers, as Layout.pool lays them."""
    assert call.pooled is not None
    kernel, stride = call.pooled
    rows = np.bincount(call.queries.sites.document, minlength=call.queries.documents)
    row0, document = np.cumsum(rows) - rows, call.keys.sites.document
    slots = np.bincount(document, minlength=call.keys.documents)
    index = np.arange(document.size) - (np.cumsum(slots) - slots)[document]
    first = index * stride - (kernel - stride) // 2
    last = np.minimum(first + kernel, rows[document]) - 1
    return row0[document] + np.maximum(first, 0), row0[document] + last


def _seen_keys(plan: Plan, known: BoolArray) -> BoolArray:
    """(keys,): those that the known queries see, in any head."""
    a = plan.arrays
    q_rows, k_rows, (key, mask, *_) = a.q_rows.numpy(), a.k_rows.numpy(), a.entries.numpy().T
    tile = np.repeat(np.arange(len(q_rows)), np.diff(a.entry_start.numpy()))
    active = np.append(known, False)[q_rows]  # (QT, 64); row -1 is the False
    entries = np.flatnonzero(active.any(axis=1)[tile])
    words = np.append(a.masks.numpy(), np.full((1, TILE), -1), axis=0)[mask[entries]]  # mask -1 is the last
    union = np.bitwise_or.reduce(np.where(active[tile[entries]], words, 0), axis=1)
    bits = (union[:, None] >> np.arange(TILE) & 1).astype(bool)
    seen = np.zeros(plan.keys.size + 1, bool)
    seen[k_rows[key[entries]][bits]] = True
    return seen[:-1]
