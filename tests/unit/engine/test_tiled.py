"""How the portable backend cuts its work."""

import pytest
import torch

from conformance.rule import Case, judge
from longspan.engine.backends.chunks import PADDING, SCORES, SEGMENT, chunks
from longspan.engine.plan import Plan, plan
from longspan.layout import Layout
from longspan.patterns import Causal, Full, GlobalTokens, Window

LONG = Layout.packed([9000], marked=[[0, 4000, 8999]])
PLANS = [
    plan(Window(300) | GlobalTokens(), LONG, heads=3),
    plan(Full(), LONG.take(LONG.marked_rows), LONG, heads=12),
    plan(Causal(), Layout.packed([70, 0, 1500, 3] * 3), heads=1),
]


def cut(made: Plan, heads: int) -> list[tuple[list[int], list[list[int]], int, bool]]:
    a = made.arrays
    found = chunks(a.entries, a.entry_start, a.k_rows[:, -1] >= 0, heads)
    return [(c.tiles.tolist(), c.entries.tolist(), c.masked, c.first) for c in found]


@pytest.mark.parametrize("made", PLANS, ids=repr)
def test_chunks_hold_every_entry_of_every_tile_once(made: Plan) -> None:
    start = made.arrays.entry_start.tolist()
    owned: dict[int, list[int]] = {tile: [] for tile in range(len(start) - 1)}
    for tiles, entries, _, first in cut(made, heads=12):
        assert len(set(tiles)) == len(tiles)
        for tile, numbers in zip(tiles, entries, strict=True):
            assert first == (not owned[tile])
            owned[tile] += [number for number in numbers if number >= 0]
    assert {t: sorted(n) for t, n in owned.items()} == {t: [*range(*start[t : t + 2])] for t in owned}


@pytest.mark.parametrize("made", PLANS, ids=repr)
def test_chunks_stay_small_and_hold_little_padding(made: Plan) -> None:
    for tiles, entries, _, _ in cut(made, heads=12):
        width = len(entries[0])
        assert width <= SEGMENT
        assert len(tiles) == 1 or len(tiles) * width * 12 * 64 * 64 <= SCORES
        assert sum(row.count(-1) for row in entries) <= PADDING * len(tiles) * width


@pytest.mark.parametrize("made", PLANS, ids=repr)
def test_entries_that_need_no_mask_stand_last(made: Plan) -> None:
    a = made.arrays
    plain = (a.entries[:, 1] == -1) & (a.k_rows[:, -1] >= 0)[a.entries[:, 0]]
    for _, entries, masked, _ in cut(made, heads=12):
        for row in entries:
            assert all(number >= 0 and plain[number] for number in row[masked:])


def test_many_heads_are_cut_into_groups() -> None:
    radius = tuple(3 if head % 3 else 90 for head in range(40))
    judge(Case(Window(radius), Layout.packed([130]), size=3), torch.float64, "tiled")
