"""The order of examples is a function: every example once in an epoch, whatever was asked before."""

import numpy as np
import pytest

from longspan.errors import InputError
from longspan.shuffled import shuffled
from longspan.training.order import Cursor, Order
from longspan.training.ranks import Ranks

LENGTHS = np.random.default_rng(0).integers(1, 50, 101)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 16, 17, 64, 65, 1009])
def test_a_shuffled_order_has_every_example_once(count: int) -> None:
    everything = shuffled(np.arange(count), count, (3, 4))
    assert sorted(everything.tolist()) == list(range(count))
    some = np.arange(count)[::3]
    assert shuffled(some, count, (3, 4)).tolist() == everything[::3].tolist()


def test_every_seed_and_epoch_has_an_order_of_its_own() -> None:
    orders = {tuple(shuffled(np.arange(50), 50, key)) for key in [(0, 0), (0, 1), (1, 0), (1, 1)]}
    assert len(orders) == 4


def test_orders_are_not_alike() -> None:
    """Each example comes at each place about equally often."""
    found = np.array([shuffled(np.arange(8), 8, (seed, 0)) for seed in range(4000)])
    counts = np.array([np.bincount(found[:, place], minlength=8) for place in range(8)])
    assert np.abs(counts - 500).max() < 5 * np.sqrt(500)


LIMITS = [(None, 7, 64), (100, None, 64), (100, 3, 20), (1, None, 1), (10**6, None, 30)]


@pytest.mark.parametrize(("tokens", "size", "micro"), LIMITS)
def test_steps_hold_every_example_once_within_their_limits(
    tokens: int | None, size: int | None, micro: int
) -> None:
    order = Order(LENGTHS, tokens, size, micro)
    steps = list(order.steps(Cursor(0, 0), 2))
    assert len(steps) == order.count_steps(2)
    for epoch in (0, 1):
        seen = [n for step in steps if step.epoch == epoch for batch in step.batches for n in batch.tolist()]
        assert sorted(seen) == list(range(101))
    for step in steps:
        examples = np.concatenate(step.batches)
        assert step.tokens == LENGTHS[examples].sum()
        assert tokens is None or step.tokens <= tokens or len(examples) == 1
        assert size is None or len(examples) <= size
        assert all(LENGTHS[batch].sum() <= micro or len(batch) == 1 for batch in step.batches)


def test_a_step_depends_on_its_cursor_alone() -> None:
    order = Order(LENGTHS, 200)
    steps = list(order.steps(Cursor(0, 0), 1))
    again = Order(LENGTHS, 200).step(steps[3].after)
    assert [batch.tolist() for batch in again.batches] == [batch.tolist() for batch in steps[4].batches]


def test_a_large_step_is_read_in_blocks() -> None:
    order = Order(np.ones(30_000, int), 20_000)
    first = order.step(Cursor(0, 0))
    assert first.tokens == 20_000
    assert order.step(first.after).tokens == 10_000
    assert order.step(first.after).after == Cursor(1, 0)


@pytest.mark.parametrize("batches", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_processes_share_the_batches_of_a_step(batches: int, count: int) -> None:
    shares = [Ranks(rank, count).share(batches) for rank in range(count)]
    assert sorted(number for share in shares for number, _ in share) == list(range(batches))
    sharded = [Ranks(rank, count, sharded=True).share(batches) for rank in range(count)]
    assert len({len(share) for share in sharded}) == 1
    assert sorted(number for share in sharded for number, counts in share if counts) == list(range(batches))


@pytest.mark.parametrize(
    ("lengths", "options", "message"),
    [
        ([], {"batch_size": 1}, "`data` must be at least one example"),
        ([3, 0], {"batch_size": 1}, r"`data\[1\]` must be at least one token long"),
        ([3], {}, "`batch_size` must be given, or batch_tokens"),
        ([3], {"batch_size": 0}, "`batch_size` must be at least 1"),
    ],
)
def test_bad_data_and_sizes_are_told(lengths: list[int], options: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Order(np.array(lengths, int), **options)
