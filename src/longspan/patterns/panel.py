"""What a picture of a pattern shows, before it becomes text or SVG: cells, parts, documents, marks."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from longspan.errors import bad
from longspan.layout import Layout
from longspan.patterns.base import Pattern
from longspan.patterns.compose import Intersection, Sum, Union
from longspan.shapes import BoolArray, FloatArray, IntArray

_MOST_PAIRS = 2**26
_MOST_PANELS = 4


@dataclass(frozen=True, eq=False)
class Axis:
    """One side of a picture, a cell for every `scale` rows of the layout."""

    position: IntArray
    marked: BoolArray
    opens: BoolArray
    "The cell begins another document than the cell before."


@dataclass(frozen=True, eq=False)
class Panel:
    """One head's picture; its arrays are (rows, columns) of cells, rows being queries."""

    title: str
    scale: int
    "A cell stands for this many rows and columns."
    parts: tuple[str, ...]
    "The parts of the pattern, in the order in which they claim cells."
    part: IntArray
    "Which part claims the cell, -1 for none."
    count: IntArray
    "The largest count inside the cell."
    share: FloatArray
    "How much of the cell is allowed, 0 to 1."
    inside: BoolArray
    "The cell holds pairs of one document."
    rows: Axis
    columns: Axis


def panels(
    pattern: Pattern, queries: Layout, keys: Layout, heads: Iterable[int] | None, cells: int
) -> list[Panel]:
    """One panel, of at most `cells` rows and columns, for each distinct head asked for."""
    if queries.size * keys.size > _MOST_PAIRS:
        raise bad(
            "queries", f"at most {_MOST_PAIRS} pairs with the keys", queries, "Draw a shorter document."
        )
    scale = max(1, -(-max(queries.size, keys.size) // cells))
    names = tuple(name for name, _ in parts_of(at_one_length(pattern, queries)))
    return [_panel(title, names, one, queries, keys, scale) for title, one in _distinct(pattern, heads)]


def _distinct(pattern: Pattern, heads: Iterable[int] | None) -> list[tuple[str, Pattern]]:
    """Titles and patterns of the heads to draw; equal heads share a panel."""
    if heads is None and pattern.heads_declared is None:
        return [("", pattern.head(0))]
    groups: dict[Pattern, list[str]] = {}
    for h in range(pattern.heads_declared or 1) if heads is None else heads:
        groups.setdefault(pattern.head(h), []).append(str(h))
    titles = {one: f"head{'s' * (len(hs) > 1)} {', '.join(hs)}" for one, hs in groups.items()}
    return [(title, one) for one, title in titles.items()][:_MOST_PANELS]


def at_one_length(pattern: Pattern, queries: Layout) -> Pattern:
    """What the pattern is for documents of the queries' length, if they all have one."""
    lengths = set(queries.lengths.tolist())
    return pattern.at(lengths.pop()) if len(lengths) == 1 else pattern


def _panel(
    title: str, names: tuple[str, ...], pattern: Pattern, queries: Layout, keys: Layout, scale: int
) -> Panel:
    parts = parts_of(at_one_length(pattern, queries))
    counts = in_cells(pattern.matrix(queries, keys), scale)
    same = in_cells(queries.sites.document[:, None] == keys.sites.document, scale)
    claimed = np.full(counts.shape[:2], -1)
    for number, (_, part) in reversed([*enumerate(parts)]):  # the first part has the last word
        claimed[in_cells(part.matrix(queries, keys), scale).any(axis=(2, 3))] = number
    share = np.count_nonzero(counts, axis=(2, 3)) / np.maximum(np.count_nonzero(same, axis=(2, 3)), 1)
    return Panel(
        title,
        scale,
        names,
        claimed,
        counts.max(axis=(2, 3), initial=0),
        share,
        np.any(same, axis=(2, 3)),
        axis(queries, scale),
        axis(keys, scale),
    )


def parts_of(pattern: Pattern) -> list[tuple[str, Pattern]]:
    """The parts that deserve a colour each: of a union or sum, also where an intersection cuts it."""
    if isinstance(pattern, Union | Sum):
        return [named for part in pattern.parts for named in parts_of(part)]
    if isinstance(pattern, Intersection) and len(inner := parts_of(pattern.parts[0])) > 1:
        cut = pattern.parts[1:]
        return [(name, Intersection((part, *cut))) for name, part in inner]
    return [(repr(pattern), pattern)]


def in_cells(matrix: IntArray, scale: int) -> IntArray:
    """(rows, columns) -> (rows / scale, columns / scale, scale, scale), filled up with zeros."""
    fill = [(0, -size % scale) for size in matrix.shape]
    filled = np.pad(matrix, fill)
    height, width = filled.shape
    return filled.reshape(height // scale, scale, width // scale, scale).swapaxes(1, 2)


def axis(layout: Layout, scale: int) -> Axis:
    """One side of a picture of these rows."""
    site = layout.sites
    document, position = site.document[::scale], site.position[::scale]
    marked = np.pad(site.marked, (0, -layout.size % scale)).reshape(-1, scale)
    opens = np.diff(document, prepend=document[:1]) != 0
    return Axis(position, np.any(marked, axis=1), opens)
