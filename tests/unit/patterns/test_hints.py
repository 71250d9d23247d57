"""What patterns say of themselves to make plans fast agrees with what they count."""

import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from longspan.engine.plan import plan
from longspan.layout import Layout, Site
from longspan.patterns import (
    BlockWindow,
    Causal,
    FromLocal,
    Full,
    GlobalBlocks,
    GlobalTokens,
    Pattern,
    Reach,
    SameTag,
    Spans,
    Strided,
    ToGlobal,
    Window,
)
from longspan.patterns.base import counts
from longspan.shapes import BoolArray, IntArray
from sweep import sweep
from unit.patterns.places import PLACES

HEADS = list(dict.fromkeys(p.head(h) for p in sweep() for h in range(min(p.heads_declared or 1, 3))))


def tiles(layout: Layout, *, split: bool, size: int) -> list[IntArray]:
    """Rows of one document each, cut at random from the sorted ones; marked rows apart if `split`."""
    site, found = layout.sites, []
    for document in range(layout.documents):
        rows = np.flatnonzero(site.document == document)
        for group in [rows[site.marked[rows]], rows[~site.marked[rows]]] if split else [rows]:
            ordered = group[np.argsort(site.position[group], kind="stable")]
            found += [ordered[i : i + size] for i in range(0, ordered.size, size)]
    return found


def spans_of(site: Site, groups: list[IntArray], *, split: bool) -> Spans:
    def column(function: object, values: IntArray | BoolArray) -> IntArray:
        return np.array([function(values[group]) for group in groups], np.int32)  # type: ignore[operator]

    marked = column(np.all, site.marked).astype(bool)
    lo, hi, length = column(np.min, site.position), column(np.max, site.position), column(np.max, site.length)
    return Spans(lo, hi, length, marked, np.full(len(groups), not split))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("pattern", HEADS, ids=repr)
def test_the_reach_holds_every_key_that_is_seen(pattern: Pattern, place: str) -> None:
    queries, keys = PLACES[place]
    k = keys.sites
    for split, size in [(True, 7), (False, 13), (False, 64)]:
        groups = tiles(queries, split=split, size=size)
        reach = pattern.reach(spans_of(queries.sites, groups, split=split))
        assert reach.lo.shape == reach.hi.shape == (len(groups), reach.step.size)
        for t, group in enumerate(groups):
            q = queries.sites[group][:, None]
            seen = (pattern.count(q, k[None, :]) > 0) & (q.document == k.document)
            near = (k.position[:, None] >= reach.lo[t]) & (k.position[:, None] <= reach.hi[t])
            offset = k.position[None, :, None] - q.position[:, :, None]  # (Q, K, 1)
            held = np.any(near[None] & (offset % reach.step == 0), axis=2)
            held |= reach.landmarks[t] & pattern.landmarks(k)
            assert not np.any(seen & ~held)


@pytest.mark.parametrize("pattern", HEADS, ids=repr)
def test_the_reach_of_no_tiles_is_empty(pattern: Pattern) -> None:
    none = np.zeros(0, np.int32)
    reach = pattern.reach(Spans(none, none, none, none.astype(bool), none.astype(bool)))
    assert reach.lo.shape[0] == reach.landmarks.size == 0


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("pattern", HEADS, ids=repr)
def test_the_pattern_at_a_length_is_the_pattern_there(pattern: Pattern, place: str) -> None:
    queries, keys = PLACES[place]
    for document, length in enumerate(queries.lengths.tolist()):
        q = queries.sites[queries.sites.document == document][:, None]
        k = keys.sites[keys.sites.document == document][None, :]
        np.testing.assert_array_equal(pattern.at(length).count(q, k), pattern.count(q, k))


@pytest.mark.parametrize("pattern", HEADS, ids=repr)
def test_counts_are_constant_on_squares_of_the_grain(pattern: Pattern) -> None:
    site = Layout.packed([67], marked=[[0, 30]]).sites
    counts = pattern.count(site[:, None], site[None, :])
    first = site.position - site.position % (pattern.grain or 67)
    np.testing.assert_array_equal(counts, counts[first][:, first])


@pytest.mark.parametrize("pattern", HEADS, ids=repr)
def test_a_shift_moves_nothing(pattern: Pattern) -> None:
    site = Layout.packed([67], marked=[[0, 30]]).sites
    far = [pattern.shift, 3 * pattern.shift]
    for offset in far:
        moved = replace(
            site, position=site.position + offset, last=site.last + offset, length=site.length + 9
        )
        if pattern.shift:
            before = pattern.count(site[:, None], site[None, :])
            np.testing.assert_array_equal(pattern.count(moved[:, None], moved[None, :]), before)


@pytest.mark.parametrize("pattern", HEADS, ids=repr)
def test_marks_of_queries_matter_only_where_the_pattern_says_so(pattern: Pattern) -> None:
    site = Layout.packed([67], marked=[[0, 30]]).sites
    flipped = replace(site, marked=~site.marked)
    same = np.array_equal(
        pattern.count(site[:, None], site[None]), pattern.count(flipped[:, None], site[None])
    )
    assert same or pattern.splits_marked


@pytest.mark.parametrize(
    ("pattern", "step"),
    [
        (Window(3, dilation=4), 4),
        (Window(3, dilation=4) | GlobalTokens(), 4),
        (Window(3, dilation=4) & Causal(), 4),
        (Window(3, dilation=4) | Window(3, dilation=2), 1),
        (Window(3, dilation=4) + Window(9, dilation=4), 4),
        (GlobalTokens() | ToGlobal(), 0),
        (Strided(8), 1),
        (Full(), 1),
    ],
)
def test_parts_agree_on_a_step(pattern: Pattern, step: int) -> None:
    assert pattern.step == step


def test_grains_combine_to_what_they_share() -> None:
    assert (BlockWindow(8) | GlobalBlocks(12)).grain == 4
    assert (BlockWindow(8) & Full()).grain == 8
    assert (BlockWindow(8) | Window(1)).grain == 1
    assert Full().grain == 0


def test_longformers_local_rows_reach_the_window_and_the_marked_keys_only() -> None:
    local = (Window(5) | ToGlobal()) & FromLocal()
    lo = np.array([100, 0], np.int32)
    ends = np.array([163, 0], np.int32)
    spans = Spans(lo, ends, np.full(2, 4096, np.int32), np.array([False, True]), np.zeros(2, bool))
    reach = local.reach(spans)
    filled = reach.lo <= reach.hi
    assert reach.lo[0][filled[0]].tolist() == [95]
    assert reach.hi[0][filled[0]].tolist() == [168]
    assert not filled[1].any()
    assert reach.landmarks.tolist() == [True, False]


@dataclass(frozen=True, repr=False)
class _Near(Pattern):
    """A pattern as a newcomer writes it: `count` alone."""

    radius: int

    def count(self, q: Site, k: Site) -> IntArray:
        return counts(np.abs(q.position - k.position) <= self.radius, q, k)


@dataclass(frozen=True, repr=False)
class _NearWithReach(_Near):
    def reach(self, spans: Spans) -> Reach:
        return Reach.of(spans, (spans.lo - self.radius, spans.hi + self.radius))


LARGE = Layout.packed([8192])


@pytest.mark.parametrize("pattern", [_Near(100), _Near(100) | GlobalTokens(), Causal() & _Near(100)])
def test_a_pattern_that_plans_in_quadratic_time_is_told_what_to_write(pattern: Pattern) -> None:
    hint = "def reach(self, spans): return Reach.of(spans, (spans.lo - 100, spans.hi + 100))"
    with pytest.warns(UserWarning, match=f"_Near does not say how far it reaches.*{re.escape(hint)}"):
        slow = plan(pattern, LARGE, heads=1).arrays
    if pattern == _Near(100):  # what the warning says to write
        fast = plan(_NearWithReach(100), LARGE, heads=1).arrays
        assert all(torch.equal(a, b) for a, b in zip(slow, fast, strict=True))


def test_a_pattern_that_sees_everything_is_not_told_a_distance() -> None:
    with pytest.warns(UserWarning, match="If it sees only a part of each document, give it the method"):
        plan(_Near(10**6), LARGE, heads=1)


def test_short_documents_hinted_patterns_and_our_own_are_planned_in_silence() -> None:
    plan(_Near(99), Layout.packed([4096]), heads=1)
    plan(_Near(99), Layout.packed([100] * 1000), heads=1)
    plan(_Near(99) & Window(200), LARGE, heads=1)
    tags = {"part": np.zeros(LARGE.size, np.int32)}
    plan(SameTag("part"), Layout.packed([LARGE.size], tags=tags), heads=1)
