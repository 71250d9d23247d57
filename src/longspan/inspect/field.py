"""The receptive field of a model: what a token can know of after each layer, exact through the plans."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from longspan.engine.plan import plan
from longspan.engine.report import middle_row, seen
from longspan.layout import Layout
from longspan.models.calls import Call, Calls
from longspan.shapes import BoolArray, IntArray

Ranges = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class Field:
    """Who knows of whom: nodes are the rows of the layout, and behind them the rows of a second stream."""

    layout: Layout
    start: BoolArray
    "(nodes,): the row that is asked about, in the middle of the longest document."
    known: BoolArray
    "(layers, nodes): what it knows of after 1, 2, ... layers."

    @property
    def tokens(self) -> IntArray:
        """(layers,): of how many tokens it knows after each layer."""
        found: IntArray = self.known[:, : self.layout.size].sum(axis=1)
        return found

    @cached_property
    def complete(self) -> int | None:
        """After how many layers it knows of all that there is in its document; None: never."""
        whole = np.flatnonzero(self.tokens == self.reachable)
        return int(whole[0]) + 1 if whole.size else None

    @property
    def reachable(self) -> int:
        """How many tokens its document has."""
        site, row = self.layout.sites, self.start[: self.layout.size].argmax()
        return int((site.exists & (site.document == site.document[row])).sum()) if self.layout.size else 0


def field(calls: Calls, layout: Layout, *, heads: int) -> Field:
    """What the row in the middle knows of after each layer, by any head and through the residuals.

    >>> from longspan.models.bert import BertConfig
    >>> layout = Layout.packed([100])
    >>> field(BertConfig(layers=3, radius=2).calls(layout), layout, heads=12).tokens
    array([ 5,  9, 13])
    """
    stood = nodes(layout, [one for layer in calls for call in layer for one in (call.queries, call.keys)])
    size = max([layout.size, *(int(hi.max(initial=-1)) + 1 for _, hi in stood.values())])
    start = np.append(middle_row(layout), np.zeros(size - layout.size, bool))
    known = np.zeros((len(calls), size), bool)
    for depth in range(len(calls)):
        if depth and len(set(calls[: depth + 1])) == 1:  # alike so far: one layer more is one step more
            known[depth] = _before(calls[depth], known[depth - 1], stood, heads)
            continue
        known[depth] = start
        for layer in reversed(calls[: depth + 1]):
            known[depth] = _before(layer, known[depth], stood, heads)
    return Field(layout, start, known)


def _before(layer: Sequence[Call], known: BoolArray, stood: dict[Layout, Ranges], heads: int) -> BoolArray:
    """The nodes of a layer's input that what is `known` of its output depends on."""
    after = [call for call in layer[1:] if call.pooled]  # they read what the calls before had given
    for call in reversed(after):
        known = known | _reached(call, known, stood, heads)
    found = [known, *(_reached(call, known, stood, heads) for call in layer if call not in after)]
    together: BoolArray = np.logical_or.reduce(found)
    return together


def _reached(call: Call, known: BoolArray, stood: dict[Layout, Ranges], heads: int) -> BoolArray:
    """The nodes that the known ones see by one call."""
    pairs = plan(call.pattern, call.queries, call.keys, heads=heads)
    looks = known[stood[call.queries][0]]
    first, last = _slots(call) if call.pooled else stood[call.keys]
    rows = seen(pairs, looks)
    edges = np.zeros(known.size + 1, np.int64)
    np.add.at(edges, first[rows], 1)
    np.add.at(edges, last[rows] + 1, -1)
    return np.cumsum(edges)[:-1] > 0


def _slots(call: Call) -> Ranges:
    """The rows that each pooled slot covers, as Layout.pool lays them."""
    assert call.pooled is not None
    kernel, stride = call.pooled
    rows = np.bincount(call.queries.sites.document, minlength=call.queries.documents)
    row0, document = np.cumsum(rows) - rows, call.keys.sites.document
    slots = np.bincount(document, minlength=call.keys.documents)
    index = np.arange(document.size) - (np.cumsum(slots) - slots)[document]
    first = index * stride - (kernel - stride) // 2
    last = np.minimum(first + kernel, rows[document]) - 1
    return row0[document] + np.maximum(first, 0), row0[document] + last


def nodes(layout: Layout, layouts: Iterable[Layout]) -> dict[Layout, Ranges]:
    """For each layout of a call the nodes that its rows are, first and last of each row.

    Rows are those of the model's layout, in the same number (perhaps told otherwise, as blocks) or some of
    them; what a joined layout has behind them is the second stream.
    """
    distinct = dict.fromkeys(layouts)
    size = layout.size
    joined = next((one for one in distinct if one.size > size), None)
    stream = None if joined is None else joined.take(np.arange(size, joined.size))
    place = {pair: row for row, pair in enumerate(_places(layout))}
    found: dict[Layout, Ranges] = {}
    for one in distinct:
        if stream is not None and one != layout and _places(one) == _places(stream):
            rows: IntArray = size + np.arange(one.size)
        elif one.size >= size:
            rows = np.arange(one.size)
        else:
            rows = np.asarray([place.get(pair, 0) for pair in _places(one)], np.int64)
        found[one] = rows, rows
    return found


def _places(layout: Layout) -> list[tuple[int, int]]:
    site = layout.sites
    return list(zip(site.document.tolist(), site.position.tolist(), strict=True))
