"""The layers of a model as panels: equal layers together, the calls between the same rows in one picture."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from longspan.errors import bad
from longspan.inspect.field import nodes
from longspan.layout import Layout
from longspan.models.calls import Call, Calls
from longspan.patterns.base import Pattern
from longspan.patterns.compose import Intersection
from longspan.patterns.panel import Panel, at_one_length, axis, in_cells, parts_of
from longspan.shapes import IntArray

MOST_PAIRS = 2**26
MOST_PANELS = 9
BAND = 2**18


@dataclass(frozen=True, eq=False)
class Part:
    """What has a colour of its own."""

    call: str
    name: str
    kind: str
    "Parts of one kind and call share a colour."
    words: str


@dataclass(frozen=True, eq=False)
class Frame:
    """One panel of a picture."""

    title: str
    under: str
    "The names of its calls."
    parts: tuple[Part | None, ...]
    "What the numbers of the panel's parts mean; None for one that allows nothing here."
    panel: Panel
    useful: float
    "The share of the pairs that are allowed."


def titled(layers: Sequence[int]) -> str:
    """
    >>> titled(range(12)), titled([3]), titled([0, 1, 2, 7, 9, 10])
    ('layers 0 to 11', 'layer 3', 'layers 0 to 2, 7 and 9 to 10')
    """
    runs = [[layer for _, layer in run] for _, run in groupby(enumerate(layers), key=lambda p: p[1] - p[0])]
    *told, last = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return f"layer{'s' * (len(layers) > 1)} {', '.join(told)}{' and ' * bool(told)}{last}"


def frames(calls: Calls, layout: Layout, *, heads: int, cells: int) -> tuple[list[Frame], int]:
    """The panels of at most `cells` rows and columns, and how many more there would be."""
    rows = nodes(layout, [one for layer in calls for call in layer for one in (call.queries, call.keys)])
    placed = {one: first for one, (first, _) in rows.items()}
    alike: dict[tuple[Call, ...], list[int]] = {}
    for number, layer in enumerate(calls):
        for together in _joint(layer, placed):
            alike.setdefault(together, []).append(number)
    wanted = [(together, *head) for together in alike for head in _distinct(together, heads)]
    shown = [
        _frame(titled(alike[together]) + words, together, layout, placed, head, cells)
        for together, head, words in wanted[:MOST_PANELS]
    ]
    return shown, len(wanted) - len(shown)


def _joint(calls: Sequence[Call], placed: dict[Layout, IntArray]) -> Iterator[tuple[Call, ...]]:
    """Calls that look at the same keys from the same rows, or from some of them."""
    waiting = list(calls)
    while waiting:
        here = waiting[0]
        mates = tuple(
            call
            for call in waiting
            if call.keys == here.keys and np.isin(placed[call.queries], placed[here.queries]).all()
        )
        waiting = [call for call in waiting if call not in mates]
        yield mates


def _distinct(calls: Sequence[Call], heads: int) -> list[tuple[int, str]]:
    """A head of each kind, and how the title names it; heads differ by what they see."""
    kinds: dict[tuple[Pattern, ...], list[int]] = {}
    for h in range(heads):
        kinds.setdefault(tuple(call.pattern.head(h) for call in calls), []).append(h)
    if len(kinds) == 1:
        return [(0, "")]
    return [(hs[0], f", {'heads' if len(hs) > 1 else 'head'} {_listed(hs)}") for hs in kinds.values()]


def _listed(numbers: list[int]) -> str:
    run = numbers == list(range(numbers[0], numbers[-1] + 1)) and len(numbers) > 2
    return f"{numbers[0]} to {numbers[-1]}" if run else ", ".join(map(str, numbers))


def _frame(
    title: str,
    calls: Sequence[Call],
    layout: Layout,
    placed: dict[Layout, IntArray],
    head: int,
    cells: int,
) -> Frame:
    queries, keys = calls[0].queries, calls[0].keys
    if queries.size * keys.size > MOST_PAIRS:
        raise bad("length", f"at most {MOST_PAIRS:,} pairs to draw", queries.size, "Draw a shorter document.")
    scale = max(1, -(-max(queries.size, keys.size) // cells))
    patterns = [at_one_length(call.pattern.head(head), call.queries) for call in calls]
    named = [(call, *one) for call, whole in zip(calls, patterns, strict=True) for one in parts_of(whole)]
    where = {call: _places(call, queries, placed) for call in calls}
    sides = [layout if one.size == layout.size else one for one in (queries, keys)]  # not told as blocks
    shape = -(-queries.size // scale), -(-keys.size // scale)
    counts, claimed, share = np.zeros(shape, np.int64), np.full(shape, -1), np.zeros(shape)
    inside, lives, useful = np.zeros(shape, bool), np.zeros(len(named), bool), 0
    step = max(1, BAND // (scale * keys.size))  # rows of cells at once, as many as stay in the cache
    for first in range(0, shape[0], step):
        band, rows = slice(first, first + step), np.arange(first * scale, queries.size)[: step * scale]
        seen = sum(_counts(one, call, where[call][rows]) for one, call in zip(patterns, calls, strict=True))
        seen = in_cells(np.asarray(seen), scale)
        same = in_cells(sides[0].sites.document[rows, None] == sides[1].sites.document, scale)
        pairs, allowed = (np.count_nonzero(one, axis=(2, 3)) for one in (same, seen))
        counts[band], inside[band] = seen.max(axis=(2, 3), initial=0), pairs > 0
        share[band] = allowed / np.maximum(pairs, 1)
        useful += int(allowed.sum())
        for number, (call, _, part) in reversed([*enumerate(named)]):  # the first part has the last word
            mine = in_cells(_counts(part, call, where[call][rows]), scale).any(axis=(2, 3))
            claimed[band][mine] = number
            lives[number] |= mine.any()
    axes = [axis(one, scale) for one in sides]
    if not any(one.splits_marked for one in patterns):  # then marks mean something else, such as blocks
        axes = [replace(one, marked=np.zeros_like(one.marked)) for one in axes]
    panel = Panel("", scale, tuple(name for _, name, _ in named), claimed, counts, share, inside, *axes)
    parts = tuple(_part(*one) if alive else None for one, alive in zip(named, lives, strict=True))
    under = ", ".join(call.name for call in calls)
    return Frame(title, under, parts, panel, useful / max(queries.size * keys.size, 1))


def _part(call: Call, name: str, part: Pattern) -> Part:
    inner = part.parts[0] if isinstance(part, Intersection) and repr(part.parts[0]) == name else part
    words = call.words or inner.explain()
    if call.pooled and not call.words:
        kernel, stride = call.pooled
        words = f"Keys are slots of {kernel} tokens, one for every {stride}. {words}"
    return Part(call.name, name, type(inner).__name__, words)


def _places(call: Call, queries: Layout, placed: dict[Layout, IntArray]) -> IntArray:
    """(rows of the panel,): the call's query row that stands there, -1 for none."""
    row_of = np.full(max(int(rows.max(initial=-1)) for rows in placed.values()) + 1, -1)
    row_of[placed[call.queries]] = np.arange(call.queries.size)
    found: IntArray = row_of[placed[queries]]
    return found


def _counts(pattern: Pattern, call: Call, rows: IntArray) -> IntArray:
    """(rows, keys): the counts of some of the call's query rows, 0 where there is none."""
    found = np.zeros((rows.size, call.keys.size), np.int32)
    present = rows >= 0
    if present.any():
        found[present] = pattern.matrix(call.queries.take(rows[present]), call.keys)
    return found
