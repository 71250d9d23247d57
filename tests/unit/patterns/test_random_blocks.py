"""BigBird's random blocks: the published draws, bit for bit, and our own."""

import numpy as np
import pytest

from longspan.layout import Layout
from longspan.patterns import BlockWindow, GlobalBlocks, RandomBlocks
from longspan.shapes import IntArray


def table(plan: str, n: int, seed: int, heads: int) -> IntArray:
    """(H, N - 2, 3): what the published code calls `rand_attn`."""
    pattern = RandomBlocks(64, 3, plan, seed=seed, heads=heads)
    made = []
    for h in range(heads):
        head = pattern.head(h)
        assert isinstance(head, RandomBlocks)
        made.append(head.picks(n // 64)[1:-1])
    return np.stack(made)


GOLDEN = [
    ("tf", 1024, 0, 12, [9, 14, 7], [9, 6, 7], [2, 6, 5], [6, 7, 10], 979468),
    ("tf", 3072, 0, 12, [9, 14, 7], [9, 6, 7], [2, 15, 14], [9, 4, 15], 10777773),
    ("tf", 4096, 0, 12, [9, 14, 7], [9, 6, 7], [6, 12, 5], [3, 5, 7], 19800603),
    ("tf", 4096, 11, 12, [9, 6, 11], [14, 11, 10], [1, 8, 15], [14, 3, 12], 19714946),
    ("tf", 2048, 0, 12, [9, 14, 7], [9, 6, 7], [2, 4, 12], [6, 9, 7], 4510601),
    ("tf", 768, 0, 12, [4, 6, 7], [4, 8, 5], [2, 5, 8], [3, 5, 6], 318161),
    ("hf-train", 1024, 0, 12, [9, 14, 7], [9, 6, 7], [2, 6, 5], [6, 7, 10], 979468),
    ("hf-train", 2048, 0, 12, [4, 6, 7], [4, 8, 5], [5, 3, 1], [5, 3, 8], 2948971),
    ("hf-train", 768, 0, 12, [4, 6, 7], [4, 8, 5], [2, 5, 8], [3, 5, 6], 318161),
    ("hf-train", 4096, 0, 16, [9, 14, 7], [9, 6, 7], [6, 12, 5], [14, 15, 2], 34820839),
]


@pytest.mark.parametrize(("plan", "n", "seed", "heads", "row1", "row2", "end", "last", "checksum"), GOLDEN)
def test_the_published_draws_are_reproduced(
    plan: str,
    n: int,
    seed: int,
    heads: int,
    row1: list[int],
    row2: list[int],
    end: list[int],
    last: list[int],
    checksum: int,
) -> None:
    ids = table(plan, n, seed, heads)
    assert [ids[0, 0].tolist(), ids[0, 1].tolist()] == [row1, row2]
    assert [ids[0, -1].tolist(), ids[-1, -1].tolist()] == [end, last]
    flat = ids.reshape(-1).astype(np.int64)
    assert int(np.sum(flat * (np.arange(flat.size) % 9973 + 1))) == checksum


def test_at_1024_the_last_global_block_is_also_drawn_as_published() -> None:
    assert np.count_nonzero(table("tf", 1024, 0, 12) == 15) == 38


@pytest.mark.parametrize("n", [768, 832, 1088, 2048, 5120])
def test_the_general_draw_is_that_of_transformers_in_training(n: int) -> None:
    big_bird = pytest.importorskip("transformers.models.big_bird.modeling_big_bird")
    theirs = big_bird.BigBirdBlockSparseAttention.__new__(big_bird.BigBirdBlockSparseAttention)
    object.__setattr__(theirs, "training", True)
    before = np.random.get_state()
    np.random.seed(5)
    try:
        plan = theirs._get_rand_attn_plan(n, 64, 3)
        expected = np.stack(theirs._bigbird_block_rand_mask_with_head(n, n, 64, 64, 4, *plan))
    finally:
        np.random.set_state(before)
    np.testing.assert_array_equal(table("hf-train", n, 5, 4), expected)


def test_where_the_published_code_runs_out_of_blocks_a_row_draws_fewer() -> None:
    ids = table("tf", 576, 0, 2)
    assert (ids >= 0).any(axis=2).all()
    assert (ids < 0).any()


def test_the_users_random_state_is_not_touched() -> None:
    before = np.random.get_state()[1].tolist()  # type: ignore[index]
    for plan in ("tf", "uniform"):
        table(plan, 1216, 77, 2)
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]


def test_lengths_are_rounded_up_to_a_block_for_each_document() -> None:
    pattern = BlockWindow(64) | GlobalBlocks(64) + RandomBlocks(64, 3, "tf", heads=2)
    short, full = Layout.packed([1000]), Layout.packed([1024])
    np.testing.assert_array_equal(pattern.head(1).matrix(short), pattern.head(1).matrix(full)[:1000, :1000])


def test_as_transformers_evaluates_block_zero_counts_four_times_for_the_middle_rows() -> None:
    pattern = (BlockWindow(4) | GlobalBlocks(4)) + RandomBlocks(4, 3, "hf-eval")
    counts = pattern.matrix(Layout.packed([46]))
    assert (counts[4:44, :4] == 4).all()
    assert (counts[:4] == 1).all()
    assert (counts[44:] == 1).all()
    assert counts[4:44, 4:].max() == 1


def test_heads_that_draw_alike_are_one_pattern() -> None:
    for plan in ("hf-eval", "none"):
        pattern = RandomBlocks(4, 3, plan)
        assert pattern.head(5) is pattern
    assert RandomBlocks(4, 3, "uniform").head(0) != RandomBlocks(4, 3, "uniform").head(1)


@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 5, 6, 7, 8, 40, 257])
@pytest.mark.parametrize("count", [0, 1, 3, 5])
def test_uniform_draws_are_distinct_and_neither_global_nor_near(blocks: int, count: int) -> None:
    pattern = RandomBlocks(8, count, "uniform", seed=3).head(2)
    assert isinstance(pattern, RandomBlocks)
    for row, picks in enumerate(pattern.picks(blocks).tolist()):
        free = set(range(1, blocks - 1)) - {row - 1, row, row + 1} if 0 < row < blocks - 1 else set()
        drawn = [pick for pick in picks if pick >= 0]
        assert len(set(drawn)) == len(drawn) == min(count, len(free))
        assert set(drawn) <= free


def test_uniform_draws_are_spread_evenly_over_the_document() -> None:
    drawn = np.zeros(64)
    for head in range(200):
        pattern = RandomBlocks(8, 3, "uniform").head(head)
        assert isinstance(pattern, RandomBlocks)
        drawn += np.bincount(pattern.picks(64)[1:-1].reshape(-1), minlength=64)
    inner = drawn[3:-3] / drawn.sum() * 58
    assert abs(inner - inner.mean()).max() < 0.08


def test_draws_depend_on_seed_head_and_length_alone() -> None:
    def picks(seed: int, head: int, blocks: int) -> list[list[int]]:
        pattern = RandomBlocks(8, 3, "uniform", seed=seed).head(head)
        assert isinstance(pattern, RandomBlocks)
        rows: list[list[int]] = pattern.picks(blocks).tolist()
        return rows

    assert picks(1, 2, 30) == picks(1, 2, 30)
    assert len({str(picks(*key)[:20]) for key in [(1, 2, 30), (2, 2, 30), (1, 3, 30), (1, 2, 31)]}) == 4
