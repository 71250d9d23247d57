"""Label tiles: every allowed pair finds its label, and distances make ramps."""

from dataclasses import dataclass

import numpy as np
import pytest

from longspan.engine.labels import ClippedDistance, Labels
from longspan.engine.plan import Plan, plan
from longspan.errors import InputError
from longspan.layout import Layout, Site
from longspan.patterns import BlockWindow, ByLength, Causal, Full, GlobalTokens, Pattern, Window
from longspan.shapes import IntArray


@dataclass(frozen=True)
class Backwards:
    """Distances counted the other way round."""

    limit: int

    @property
    def size(self) -> int:
        return 2 * self.limit + 1

    def label(self, q: Site, k: Site) -> IntArray:
        distance: IntArray = np.clip(q.position - k.position, -self.limit, self.limit)
        return distance + self.limit


@dataclass(frozen=True)
class Segments:
    """Whether two tokens carry the same tag: what ETC's labels do."""

    size: int = 7

    def label(self, q: Site, k: Site) -> IntArray:
        return np.where(q.tags["segment"] == k.tags["segment"], 5, 2)


def check(made: Plan) -> None:
    """Read all labels back through ranks and lists, and compare with what `labels` says of the sites."""
    a, labels = made.arrays, made.labels
    assert labels is not None
    q, k = made.queries.sites, made.keys.sites
    tiles, kind = a.label_tiles.numpy(), a.label_kind.numpy()
    used: list[set[int]] = [set() for _ in a.label_start[1:]]
    for tile, start in enumerate(a.entry_start[:-1]):
        c = int(np.searchsorted(a.class_start.numpy(), tile, side="right")) - 1
        values = a.label_list[a.label_start[c] : a.label_start[c + 1]].numpy()
        for key, mask, _, label in a.entries[start : a.entry_start[tile + 1]].tolist():
            bits = np.full(64, -1) if mask < 0 else a.masks[mask].numpy()
            rows, keys = a.q_rows[tile].numpy(), a.k_rows[key].numpy()
            seen = (bits[:, None] >> np.arange(64) & 1).astype(bool) & (rows >= 0)[:, None] & (keys >= 0)
            i, j = np.nonzero(seen)
            expected = labels.label(q[rows[i]], k[keys[j]])
            np.testing.assert_array_equal(values[tiles[label][i, j]], expected)
            used[c].update(expected.tolist())
            slack = 64 * kind[label]
            assert tiles[label].min() >= -slack
            assert tiles[label].max() < len(values) + slack
    ramp = np.all(tiles == tiles[:, :, :1] + np.arange(64), axis=(1, 2))
    np.testing.assert_array_equal(kind, ramp)
    assert len({tile.tobytes() for tile in tiles}) == len(tiles)
    for c, labels_used in enumerate(used):
        values = a.label_list[a.label_start[c] : a.label_start[c + 1]].numpy()
        assert sorted(labels_used) == sorted(values.tolist())
        assert np.all(np.diff(values) > 0) or np.all(np.diff(values) < 0)


PATTERNS = [
    Window(20),
    Window(100),
    Full(),
    Window(30, dilation=(1, 3)) & Causal(),
    Window(9, dilation=2) | GlobalTokens(),
    BlockWindow(16) + Window(5),
    ByLength(70, Full(), Window(9)),
]
LAYOUT = Layout.packed([70, 0, 131, 1], marked=[[0], [], [3, 90], []], start=[0, 0, 9, 0])


@pytest.mark.parametrize(
    "labels", [ClippedDistance(0), ClippedDistance(12), ClippedDistance(400), Backwards(30)]
)
@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_every_pair_finds_its_label(pattern: Pattern, labels: Labels) -> None:
    heads = pattern.heads_declared or 1
    for keys in (LAYOUT, LAYOUT.pool(5, 4), Layout.join(LAYOUT, LAYOUT.pool(7, 7))):
        check(plan(pattern, LAYOUT, keys, heads=heads, labels=labels))


def test_labels_may_read_tags() -> None:
    layout = Layout.packed([150], tags={"segment": np.arange(150) // 40})
    made = plan(Window(70), layout, heads=1, labels=Segments())
    check(made)
    assert made.arrays.label_list.tolist() == [2, 5]


@pytest.mark.parametrize("labels", [ClippedDistance(256), Backwards(256)])
@pytest.mark.parametrize("dilation", [1, 4])
def test_distances_in_a_window_make_ramps_only(labels: Labels, dilation: int) -> None:
    made = plan(Window(64, dilation=dilation), Layout.packed([700, 400]), heads=1, labels=labels)
    check(made)
    assert made.arrays.label_kind.all()
    assert made.arrays.label_list.shape[0] == 129


def test_equal_distances_share_tiles() -> None:
    made = plan(Window(256), Layout.packed([4096, 333]), heads=12, labels=ClippedDistance(256))
    assert made.arrays.label_tiles.shape[0] == 9


def test_heads_of_different_dilation_have_lists_of_their_own() -> None:
    made = plan(Window(2, dilation=(1, 3)), Layout.packed([50]), heads=2, labels=ClippedDistance(5))
    a = made.arrays
    assert a.label_list.tolist() == [3, 4, 5, 6, 7, 0, 2, 5, 8, 10]
    assert a.label_start.tolist() == [0, 5, 10]


def test_a_plan_without_labels_has_none() -> None:
    a = plan(Window(2), Layout.packed([50]), heads=2).arrays
    assert a.label_tiles.shape == (0, 64, 64)
    assert a.label_list.shape == (0,)
    assert a.entries[:, 3].eq(-1).all()


def test_a_negative_limit_is_an_error() -> None:
    with pytest.raises(InputError, match="`limit` must be at least 0, but is -1"):
        ClippedDistance(-1)
