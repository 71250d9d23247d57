"""A plan in parts: some query rows after others, each part against all keys."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar, cast

import numpy as np
import torch

from longspan.engine.packed import PackedPlan
from longspan.engine.plan import Plan
from longspan.engine.watch import looked_on
from longspan.shapes import IntArray

P = TypeVar("P", bound=Plan | PackedPlan)


def split(plan: P, rows: int) -> Sequence[tuple[slice, P]]:
    """Query rows and the plan for them alone, in order: up to `rows` in a part, if its tiles allow that.

    A row's result has the same bits in a part as in the whole. Tiles are not cut: where they lie across each
    other, as those of dilated windows do, a part is larger. A packed plan is not split, nor one whose
    attention somebody looks at.

    >>> from longspan.engine.plan import plan
    >>> from longspan.layout import Layout
    >>> from longspan.patterns import Window
    >>> whole = plan(Window(2), Layout.packed([100, 50]), heads=4)
    >>> [(rows.start, part) for rows, part in split(whole, 128)]
    [(0, Plan(Window(2), 100 x 150 rows, 4 heads)), (100, Plan(Window(2), 50 x 150 rows, 4 heads))]
    """
    if isinstance(plan, PackedPlan) or looked_on():
        return [(slice(None), plan)]
    if rows not in plan._parts:
        plan._parts[rows] = _split(plan, rows)
    return cast("list[tuple[slice, P]]", plan._parts[rows])


def _split(plan: Plan, rows: int) -> list[tuple[slice, Plan]]:
    size, tiles = plan.queries.size, plan.arrays.q_rows.numpy()
    first, last = np.where(tiles < 0, size, tiles).min(axis=1, initial=size), tiles.max(axis=1, initial=-1)
    cuts = _cuts(first[last >= 0], last[last >= 0], size, rows)
    if len(cuts) <= 2:
        return [(slice(0, size), plan)]
    return [(slice(*cut), _part(plan, first, *cut)) for cut in pairwise(cuts)]


def _cuts(first: IntArray, last: IntArray, size: int, rows: int) -> list[int]:
    """Where parts begin, and where the last one ends: before rows that no tile crosses."""
    crossing = np.zeros(size + 1, np.int64)
    np.add.at(crossing, first + 1, 1)
    np.add.at(crossing, last + 1, -1)
    possible = np.flatnonzero(np.cumsum(crossing) == 0)  # ends with `size`
    cuts = [0]
    while cuts[-1] < size:
        at = int(np.searchsorted(possible, cuts[-1] + rows, side="right"))
        near = int(possible[at - 1])
        cuts.append(near if near > cuts[-1] else int(possible[at]))
    return cuts


def _part(plan: Plan, first: IntArray, start: int, stop: int) -> Plan:
    arrays = plan.arrays
    inside = (first >= start) & (first < stop)
    chosen, counts = np.flatnonzero(inside), np.diff(arrays.entry_start.numpy())
    tiles = arrays.q_rows.numpy()[chosen]
    made = {
        "class_start": np.searchsorted(chosen, arrays.class_start.numpy()),
        "q_rows": np.where(tiles < 0, tiles, tiles - start),
        "entry_start": np.append(0, np.cumsum(counts[chosen])),
        "entries": arrays.entries.numpy()[np.repeat(inside, counts)],
        "q_sites": arrays.q_sites.numpy()[start:stop],
    }
    with torch.inference_mode(False):  # as the plan itself, it may be kept
        part = {name: torch.from_numpy(np.array(array, np.int32, order="C")) for name, array in made.items()}
    queries = plan.queries.take(np.arange(start, stop))
    return replace(plan, queries=queries, arrays=arrays._replace(**part), _moved={}, _parts={})
