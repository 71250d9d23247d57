"""The panels of a picture, before they become text or SVG: who sees whom, in cells."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longspan.errors import bad
from longspan.layout import Layout
from longspan.shapes import BoolArray, FloatArray, IntArray
from longspan.words import numbered

if TYPE_CHECKING:
    from longspan.patterns.base import Pattern

MOST_PANELS = 9
"""A picture has no more; it says how many are left out."""
_MOST_PAIRS = 2**26
_BAND = 2**18  # pairs that are counted at once: as many as stay in the cache


@dataclass(frozen=True, eq=False)
class Source:
    """One attention of one head, to be drawn into a panel."""

    pattern: "Pattern"
    head: int
    queries: Layout
    keys: Layout
    rows: IntArray
    "(rows of the panel,): the row of `queries` that stands there, -1 for none."
    name: str = ""
    words: str = ""
    "What it lets see; empty: what the parts of the pattern say of themselves."


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a pattern that has a color of its own."""

    source: str
    name: str
    kind: str
    "Parts of one kind and source share a color in all panels."
    words: str


@dataclass(frozen=True, eq=False)
class Panel:
    """What queries see, the rows, of keys, the columns; arrays are (rows, columns) of cells."""

    title: str
    scale: int
    "A cell stands for this many rows and columns."
    parts: tuple[Part | None, ...]
    "In the order in which they claim cells; None for one that allows nothing here."
    part: IntArray
    "Which part claims the cell, -1 for none."
    count: IntArray
    "The largest count inside the cell."
    share: FloatArray
    "How much of the cell is allowed, 0 to 1."
    inside: BoolArray
    "The cell holds pairs of one document."
    allowed: float
    "The share of the pairs inside documents that are allowed."
    position: IntArray
    "(rows,): of the first query of each."
    opens: BoolArray
    "(rows,): the cell begins another document than the cell above."
    marked_rows: BoolArray
    marked_columns: BoolArray

    @property
    def sources(self) -> str:
        """The names of what is drawn."""
        return ", ".join(dict.fromkeys(part.source for part in self.parts if part and part.source))


def panel(
    title: str, sources: Sequence[Source], queries: Layout, keys: Layout, *, cells: int, marks: bool = True
) -> Panel:
    """The panel of some attentions, of at most `cells` rows and columns; `marks` shows marked tokens."""
    if queries.size * keys.size > _MOST_PAIRS:
        raise bad(
            "length", f"at most {_MOST_PAIRS:,} pairs to draw", queries.size, "Draw a shorter document."
        )
    scale = max(1, -(-max(queries.size, keys.size) // cells))
    parts = [
        (source, *part)
        for source in sources
        for part in at_one_length(source.pattern, source.queries).drawn_parts()
    ]
    shape = -(-queries.size // scale), -(-keys.size // scale)
    count, claimed, share = np.zeros(shape, np.int64), np.full(shape, -1), np.zeros(shape)
    inside, alive = np.zeros(shape, bool), np.zeros(len(parts), bool)
    allowed = total = 0
    step = max(1, _BAND // max(scale * keys.size, 1))
    for first in range(0, shape[0], step):
        band, rows = slice(first, first + step), np.arange(first * scale, queries.size)[: step * scale]
        every = [_counts(source.pattern, source, rows) for source in sources]
        counts = _in_cells(np.sum(every, axis=0), scale)
        mates = _in_cells((queries.sites.document[rows, None] == keys.sites.document).view(np.int8), scale)
        pairs, seen = (np.count_nonzero(each, axis=(2, 3)) for each in (mates, counts))
        count[band], inside[band] = counts.max(axis=(2, 3), initial=0), pairs > 0
        share[band] = seen / np.maximum(pairs, 1)
        allowed, total = allowed + int(seen.sum()), total + int(pairs.sum())
        for number, (source, _, part) in reversed([*enumerate(parts)]):  # the first part has the last word
            claims = _in_cells(_counts(part, source, rows), scale).any(axis=(2, 3))
            claimed[band][claims] = number
            alive[number] |= claims.any()
    document = queries.sites.document[::scale]
    named = tuple(
        _named(source, shown) if alive[number] else None for number, (source, shown, _) in enumerate(parts)
    )
    return Panel(
        title=title,
        scale=scale,
        parts=named,
        part=claimed,
        count=count,
        share=share,
        inside=inside,
        allowed=allowed / max(total, 1),
        position=queries.sites.position[::scale],
        opens=np.diff(document, prepend=document[:1]) != 0,
        marked_rows=_marked(queries, scale) & marks,
        marked_columns=_marked(keys, scale) & marks,
    )


def head_groups(patterns: "Sequence[Pattern]", heads: Iterable[int]) -> list[tuple[int, str]]:
    """Of heads that see the same by all patterns, the first one and what the group is called.

    >>> from longspan.patterns import Window
    >>> head_groups([Window((5, 5, 9))], range(3))
    [(0, 'heads 0 to 1'), (2, 'head 2')]
    """
    groups: dict[tuple[Pattern, ...], list[int]] = {}
    for head in heads:
        groups.setdefault(tuple(pattern.head(head) for pattern in patterns), []).append(head)
    return [(group[0], numbered("head", sorted(group))) for group in groups.values()]


def at_one_length(pattern: "Pattern", queries: Layout) -> "Pattern":
    """What the pattern is for documents of the queries' length, if they all have one."""
    lengths = set(queries.lengths.tolist())
    return pattern.at(lengths.pop()) if len(lengths) == 1 else pattern


def _named(source: Source, shown: "Pattern") -> Part:
    return Part(source.name, repr(shown), type(shown).__name__, source.words or shown.explain())


def _counts(pattern: "Pattern", source: Source, rows: IntArray) -> IntArray:
    """(rows, keys): how often some rows of the panel count the keys, 0 where no query stands."""
    queries, one_head = source.rows[rows], pattern.head(source.head)
    counts = np.zeros((rows.size, source.keys.size), np.int32)
    if (present := queries >= 0).any():
        counts[present] = one_head.matrix(source.queries.take(queries[present]), source.keys)
    return counts


def _in_cells(matrix: IntArray, scale: int) -> IntArray:
    """(rows, columns) -> (rows / scale, columns / scale, scale, scale), filled up with zeros."""
    filled = np.pad(matrix, [(0, -size % scale) for size in matrix.shape])
    height, width = filled.shape
    return filled.reshape(height // scale, scale, width // scale, scale).swapaxes(1, 2)


def _marked(layout: Layout, scale: int) -> BoolArray:
    """(cells,): those that hold a marked token."""
    cells = np.pad(layout.sites.marked, (0, -layout.size % scale)).reshape(-1, scale)
    marked: BoolArray = np.any(cells, axis=1)
    return marked
