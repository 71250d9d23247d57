"""The plan as a value: classes, tiles, caching, counts of pairs, words and errors."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from helpers import dense_counts, true_counts
from longspan.engine.labels import ClippedDistance
from longspan.engine.plan import PlanArrays, plan
from longspan.errors import InputError
from longspan.layout import Layout, Site
from longspan.patterns import (
    BlockWindow,
    ByLength,
    Causal,
    FromLocal,
    Full,
    GlobalBlocks,
    GlobalTokens,
    Pattern,
    RandomBlocks,
    ToGlobal,
    Window,
)
from longspan.shapes import IntArray


def test_heads_of_equal_patterns_share_a_class() -> None:
    made = plan(Window(3, dilation=(1, 2, 1, 2, 4)), Layout.packed([300]), heads=5)
    assert made.arrays.head_class.tolist() == [0, 1, 0, 1, 2]
    assert made.arrays.class_start.shape == (4,)


def test_a_window_has_only_the_tiles_it_needs() -> None:
    made = plan(Window(256), Layout.packed([4096]), heads=12)
    assert made.arrays.q_rows.shape == made.arrays.k_rows.shape == (64, 64)
    assert made.arrays.entries.shape[0] == 64 * 9 - 2 * (1 + 2 + 3 + 4)
    assert made.arrays.masks.shape[0] == 2


def test_dilated_tiles_hold_one_residue_and_waste_nothing() -> None:
    made = plan(Window(256, dilation=8), Layout.packed([4096]), heads=1)
    assert np.all(made.arrays.q_rows.numpy() % 8 == made.arrays.q_rows.numpy()[:, :1] % 8)
    straight = plan(Window(256), Layout.packed([512]), heads=1)
    assert made.pairs_computed == 8 * straight.pairs_computed


def test_marked_tokens_are_gathered() -> None:
    layout = Layout.packed([4096], marked=[[7, 1000, 3000]])
    arrays = plan(Window(64) | GlobalTokens(), layout, heads=1).arrays
    assert [7, 1000, 3000] in [row[row >= 0].tolist() for row in arrays.q_rows]
    assert [7, 1000, 3000] in [row[row >= 0].tolist() for row in arrays.k_rows]


def test_marked_rows_that_see_nothing_cost_nothing() -> None:
    layout = Layout.packed([256], marked=[[5]])
    made = plan((Window(64) | ToGlobal()) & FromLocal(), layout, heads=1)
    tile = next(t for t, row in enumerate(made.arrays.q_rows) if row[0] == 5)
    assert made.arrays.entry_start[tile] == made.arrays.entry_start[tile + 1]


def test_rows_that_do_not_exist_stand_apart_and_see_nothing() -> None:
    mask = np.ones((2, 100), bool)
    mask[0, 30:] = False
    made = plan(Full(), Layout.padded(mask), heads=1)
    rows = made.arrays.q_rows.numpy()
    alive = np.append(mask.reshape(-1), True)[rows] | (rows < 0)
    assert np.all(alive.all(axis=1) | ~alive.any(axis=1, where=rows >= 0))
    assert made.arrays.masks.shape[0] == 0


def test_a_document_has_the_same_entries_whatever_its_batch_mates() -> None:
    pattern = Window(70) | GlobalTokens()
    alone = plan(pattern, Layout.packed([200], marked=[[3]]), heads=1).arrays
    both = plan(pattern, Layout.packed([90, 200], marked=[[], [3]]), heads=1).arrays
    tiles = both.q_rows[:, 0] >= 90
    moved = torch.where(alone.q_rows >= 0, alone.q_rows + 90, -1)
    assert torch.equal(both.q_rows[tiles], moved)
    for mine, theirs in zip(range(len(alone.q_rows)), tiles.nonzero().flatten().tolist(), strict=True):
        assert listed(alone, mine, 90) == listed(both, theirs, 0)


def listed(a: PlanArrays, tile: int, shift: int) -> list[tuple[Any, ...]]:
    """A query tile's entries with rows and masks spelled out."""
    entries = a.entries[a.entry_start[tile] : a.entry_start[tile + 1]].tolist()
    keys = [[row + shift for row in a.k_rows[key].tolist() if row >= 0] for key, *_ in entries]
    masks = [None if mask < 0 else a.masks[mask].tolist() for _, mask, *_ in entries]
    return list(zip(keys, masks, [entry[2] for entry in entries], strict=True))


def test_random_blocks_counted_again_have_multiplicities() -> None:
    pattern = (BlockWindow(64) | GlobalBlocks(64)) + RandomBlocks(64, 3, "hf-eval")
    made = plan(pattern, Layout.packed([1024]), heads=12)
    assert sorted(set(made.arrays.entries[:, 2].tolist())) == [1, 4]
    assert made.arrays.masks.shape[0] == 0
    assert made.pairs_computed == made.pairs_allowed


def test_short_documents_may_have_a_pattern_of_their_own() -> None:
    layout = Layout.packed([100, 700, 64])
    made = plan(ByLength(128, Full(), Window(5, dilation=2)), layout, heads=1)
    np.testing.assert_array_equal(dense_counts(made), true_counts(made.pattern, layout, layout, 1))


@dataclass(frozen=True)
class _EveryThirdKey(Pattern):
    """A pattern with no hints at all, whose counts are left to broadcast."""

    def count(self, q: Site, k: Site) -> IntArray:
        return np.where(k.position % 3 == 0, 2, 0)


def test_a_pattern_needs_nothing_but_its_count() -> None:
    layout = Layout.packed([100, 65])
    made = plan(_EveryThirdKey(), layout, heads=1)
    truth = np.broadcast_to(true_counts(made.pattern, layout, layout, 1), (1, 165, 165))
    np.testing.assert_array_equal(dense_counts(made), truth)


def test_pairs_computed_are_trimmed_for_groups_of_six_rows() -> None:
    made = plan(Causal(), Layout.packed([13]), heads=2)
    assert made.pairs_allowed == 2 * 13 * 14 // 2
    assert made.pairs_computed == 2 * (6 * 6 + 6 * 12 + 1 * 13)


def test_full_attention_is_dense() -> None:
    mask = np.ones((2, 50), bool)
    mask[1, 20:] = False
    made = plan(Full(), Layout.padded(mask), heads=3)
    assert made.pairs_allowed == made.pairs_computed == made.pairs_dense == 3 * (50 * 50 + 20 * 20)


def test_equal_arguments_give_the_same_plan() -> None:
    first = plan(Window(5), Layout.packed([30]), heads=2, labels=ClippedDistance(3))
    layout = Layout.packed([30])
    assert plan(Window(5), layout, layout, heads=2, labels=ClippedDistance(3)) is first
    assert plan(Window(5), Layout.packed([31]), heads=2, labels=ClippedDistance(3)) is not first
    assert plan(Window(5), Layout.packed([30]), heads=2) is not first


def test_arrays_are_moved_once_and_only_if_they_must() -> None:
    made = plan(Window(5), Layout.packed([30]), heads=2)
    assert made.to("cpu") is made.arrays
    assert made.to("meta") is made.to(torch.device("meta"))
    assert made.to("meta").masks.device.type == "meta"


def test_arrays_have_the_promised_types() -> None:
    arrays = plan(Window(5), Layout.packed([30]), heads=2, labels=ClippedDistance(3)).arrays
    for name, array in arrays._asdict().items():
        assert array.dtype == (torch.int64 if name == "masks" else torch.int32), name
    assert arrays.nbytes == sum(array.numel() * array.element_size() for array in arrays)


def test_a_plan_explains_itself() -> None:
    layout = Layout.packed([4096], marked=[[0]])
    text = plan(Window((256, 256, 8)) | GlobalTokens(), layout, heads=3, labels=ClippedDistance(9)).explain()
    for words in (
        "3 heads",
        "heads 0 to 1: ",
        "head 2: ",
        "full",
        "of full attention",
        "MB",
        "tiled",
        "dense",
    ):
        assert words in text, words
    assert len(re.findall(r" runs float32 with head size 64 on cpu", text)) == 1


def test_a_plan_explains_refusals() -> None:
    text = plan(Window(3), Layout.packed([9]), Layout.packed([5]), heads=1).explain(torch.float64)
    assert re.search(r"native .*\n  tiled     runs float64", text)
    assert "1 head\n" in text
    assert "Layout(5 rows" in text


def test_a_plan_has_a_short_name() -> None:
    assert repr(plan(Window(2), Layout.packed([9]), Layout.packed([7]), heads=2)) == (
        "Plan(Window(2), 9 x 7 rows, 2 heads)"
    )


LAYOUT = Layout.packed([5])


@pytest.mark.parametrize(
    ("arguments", "heads", "message"),
    [
        ((Window(3), LAYOUT), 0, "`heads` must be at least 1, but is 0."),
        ((Window(3), LAYOUT), "two", "`heads` must be a whole number, but is 'two'."),
        ((Window((3, 4)), LAYOUT), 3, "`heads` must be 2, as many as the pattern lists, but is 3."),
        (("Window", LAYOUT), 3, "`pattern` must be a pattern, such as Window(256), but is 'Window'."),
        ((Window(3), 5), 1, "`queries` must be a Layout, but is 5."),
        ((Window(3), LAYOUT, 5), 1, "`keys` must be a Layout, but is 5."),
        (
            (Window(3), LAYOUT, Layout.packed([2, 3])),
            1,
            "`keys` must be of the same documents as `queries`, which hold 1, but is '2 documents'.",
        ),
        ((Window(3), [5]), 1, "must be hashable, but: unhashable type: 'list'."),
    ],
)
def test_bad_arguments_are_named(arguments: Any, heads: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        plan(*arguments, heads=heads)


@dataclass(frozen=True)
class TooLarge:
    size: int = 4

    def label(self, q: Site, k: Site) -> IntArray:
        return k.position - q.position + 3


def test_labels_out_of_range_are_errors() -> None:
    plan(Window(left=3, right=0), Layout.packed([9]), heads=1, labels=TooLarge())
    for window, wrong in ((Window(left=3, right=1), 4), (Window(left=4, right=0), -1)):
        with pytest.raises(InputError, match=f"from 0 to 3, but TooLarge.* gives {wrong}"):
            plan(window, Layout.packed([9]), heads=1, labels=TooLarge())


def test_query_tiles_of_one_residue_follow_each_other() -> None:
    """They share key tiles, which a kernel then finds packed already."""
    arrays = plan(Window(64, dilation=2), Layout.packed([300]), heads=1).arrays
    assert arrays.q_rows[:, 0].tolist() == [0, 128, 256, 1, 129, 257]
