"""Every plan covers exactly what its pattern says, each pair once, whatever the layouts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import dense_counts, true_counts
from longspan.engine.plan import Plan, plan
from longspan.layout import Layout, Site
from longspan.patterns import (
    BlockWindow,
    ByLength,
    Causal,
    Fixed,
    FromLocal,
    Full,
    GlobalBlocks,
    GlobalTokens,
    Pattern,
    RandomBlocks,
    Strided,
    ToGlobal,
    Window,
)
from sweep import EXAMPLES

SIZES = [1, 63, 64, 65, 127, 131]
MIXED = [
    Window(70) | GlobalTokens(),
    (Window(9) | ToGlobal()) & FromLocal(),
    Window(5, dilation=3) & Causal(),
    Window((4, 7), dilation=(2, 1)) | GlobalTokens(),
    Window(3, dilation=2) | Window(2, dilation=5),
    Window(30, dilation=2) & Window(20, dilation=3),
    (BlockWindow(16) | GlobalBlocks(16)) + RandomBlocks(16, 2, "uniform", seed=3),
    ByLength(64, Full(), (BlockWindow(16) | GlobalBlocks(16)) + RandomBlocks(16, 3, "hf-eval")),
    ByLength(70, Window(3, dilation=2), Fixed(16, summary=2) | GlobalTokens()),
    (Strided(8) | GlobalTokens()) & Causal(),
    Full() + Window(3) + GlobalTokens(),
    Fixed(32) + ToGlobal(),
]


def check(pattern: Pattern, queries: Layout, keys: Layout | None = None) -> Plan:
    heads = pattern.heads_declared or 2
    made = plan(pattern, queries, keys, heads=heads)
    truth = true_counts(pattern, queries, made.keys, heads)
    np.testing.assert_array_equal(dense_counts(made), truth)
    check_shape(made)
    assert made.pairs_allowed == np.count_nonzero(truth)
    assert made.pairs_allowed <= made.pairs_computed
    return made


def check_shape(made: Plan) -> None:
    """What the arrays promise besides the pairs."""
    a = made.arrays
    assert all(array.is_contiguous() for array in a)
    assert a.q_rows.shape[0] == a.class_start[-1] == a.entry_start.shape[0] - 1
    assert a.entry_start[-1] == a.entries.shape[0]
    classes = [a.q_rows[a.class_start[c] : a.class_start[c + 1]] for c in range(a.class_start.shape[0] - 1)]
    for rows in classes:
        assert sorted(rows[rows >= 0].tolist()) == list(range(made.queries.size))
    for rows, site in ((a.q_rows, made.queries.sites), (a.k_rows, made.keys.sites)):
        real = rows.numpy() >= 0
        assert np.all(real[:, 0])
        assert np.all(real[:, :-1] >= real[:, 1:]), "padding stands at the end"
        first = site.document[rows.numpy()[:, :1]]
        assert np.all((site.document[rows.numpy()] == first) | ~real), "a tile holds one document"
    assert np.all(made.keys.sites.exists[a.k_rows.numpy()] | (a.k_rows.numpy() < 0))
    used = np.unique(a.entries[:, 1].numpy())
    assert np.array_equal(used[used >= 0], np.arange(a.masks.shape[0])), "every mask is used"
    assert len({row.tobytes() for row in a.masks.numpy()}) == a.masks.shape[0], "masks are distinct"
    check_order(made)


def check_order(made: Plan) -> None:
    """Query tiles by document; the nearest key tile first, then ascending."""
    a, q, k = made.arrays, made.queries.sites, made.keys.sites
    q_first, k_first = a.q_rows[:, 0].numpy(), a.k_rows[:, 0].numpy()
    for c in range(a.class_start.shape[0] - 1):
        rows = q_first[a.class_start[c] : a.class_start[c + 1]]
        assert np.all(np.diff(q.document[rows]) >= 0)
    for tile, row in enumerate(q_first):
        keys = a.entries[a.entry_start[tile] : a.entry_start[tile + 1], 0].tolist()
        distance = np.abs(k.position[k_first[keys]] - q.position[row])
        if keys:
            assert distance[0] == distance.min()
            rest = [key for key in keys if key != keys[0]]
            assert keys == [keys[0]] * (len(keys) - len(rest)) + sorted(rest)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("pattern", [*EXAMPLES, *MIXED], ids=repr)
def test_a_plan_covers_its_pattern(pattern: Pattern, size: int) -> None:
    check(pattern, Layout.packed([size], marked=[{0, size // 3, size - 1}]))


@pytest.mark.parametrize("pattern", [*EXAMPLES, *MIXED], ids=repr)
def test_tiles_that_look_alike_are_alike(pattern: Pattern) -> None:
    marked = [[0, 64, 200], [64], [300, 301]]
    check(pattern, Layout.packed([450, 130, 333], marked=marked, start=[0, 64, 5]))


@pytest.mark.parametrize("pattern", [*EXAMPLES, *MIXED], ids=repr)
def test_a_pattern_says_the_same_after_its_shift(pattern: Pattern) -> None:
    one = pattern.head(0)
    site = Layout.packed([90], marked=[[3, 50]]).sites
    position, length = site.position + one.shift, site.length * 2
    moved = Site(position, position, site.document + 1, length, site.marked, site.exists)
    if one.shift:
        before, after = (one.count(s[:, None], s[None, :]) for s in (site, moved))
        np.testing.assert_array_equal(before, after)


def documents() -> Layout:
    marked = [[0, 69], [], [0], [], [3, 64, 65, 130]]
    return Layout.packed([70, 0, 1, 64, 131], marked=marked, start=[0, 4, 0, 7, 64])


def short() -> Layout:
    return Layout.packed([9, 2, 0, 80, 5])


def padded() -> Layout:
    mask = np.ones((4, 90), bool)
    mask[0, 70:], mask[1, :], mask[2, 10:40] = False, False, False
    marked = np.zeros_like(mask)
    marked[:, [0, 12, 80]] = True
    return Layout.padded(mask, marked=marked)


def shuffled() -> Layout:
    return documents().take(np.random.default_rng(5).permutation(documents().size)[:200])


LAYOUTS = {
    "packed": (documents(), documents()),
    "padded": (padded(), padded()),
    "nothing marked": (Layout.packed([130, 65]), Layout.packed([130, 65])),
    "all marked": (Layout.packed([130], marked=[range(130)]), Layout.packed([130], marked=[range(130)])),
    "pooled": (documents(), documents().pool(5, 4)),
    "pooled by one": (documents(), documents().pool(3, 1)),
    "padded, pooled": (padded(), padded().pool(8, 3)),
    "marked rows": (documents().take(documents().marked_rows), documents()),
    "shuffled": (shuffled(), documents()),
    "shuffled keys": (documents(), shuffled()),
    "joined": (documents(), Layout.join(documents(), documents().pool(6, 5))),
    "joined twice": (Layout.join(documents(), documents()), Layout.join(short(), documents())),
    "rectangular": (Layout.packed([5, 80], start=[100, 30]), Layout.packed([105, 131], marked=[[2], [128]])),
    "repeated rows": (documents().take([3] * 70), documents().take([5] * 100)),
    "no rows": (Layout.packed([0, 0]), Layout.packed([5, 0])),
    "no keys": (Layout.packed([5, 0]), Layout.packed([0, 0])),
    "no documents": (Layout.packed([]), Layout.packed([])),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("pattern", [*EXAMPLES, *MIXED], ids=repr)
def test_any_layouts_are_covered(pattern: Pattern, layout: str) -> None:
    check(pattern, *LAYOUTS[layout])


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    simple = st.sampled_from([*EXAMPLES, *MIXED]).filter(lambda p: p.heads_declared in (None, 2))
    return draw(
        st.recursive(
            simple,
            lambda inner: st.one_of(
                st.builds(Pattern.__or__, inner, inner),
                st.builds(Pattern.__and__, inner, inner),
                st.builds(Pattern.__add__, inner, inner),
            ),
            max_leaves=4,
        )
    )


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    lengths = draw(st.lists(st.integers(0, 150), max_size=3))
    marked = [draw(st.sets(st.integers(0, n - 1), max_size=5)) if n else set() for n in lengths]
    start = [draw(st.integers(0, 70)) for _ in lengths]
    layout = Layout.packed(lengths, marked=marked, start=start)
    kind = draw(st.sampled_from(["packed", "pooled", "taken", "joined"]))
    if kind == "pooled":
        return layout.pool(5, draw(st.integers(1, 5)))
    if kind == "taken" and layout.size:
        return layout.take(draw(st.lists(st.integers(0, layout.size - 1), max_size=80)))
    return Layout.join(layout, layout.pool(4, 4)) if kind == "joined" else layout


@settings(max_examples=80, deadline=None)
@given(patterns(), layouts(), st.data())
def test_random_compositions_are_covered(pattern: Pattern, queries: Layout, data: st.DataObject) -> None:
    keys = data.draw(layouts().filter(lambda keys: keys.documents == queries.documents) | st.just(queries))
    check(pattern, queries, keys)
