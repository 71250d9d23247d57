"""A plan in parts gives every row what the whole plan gives it."""

import pytest
import torch

from longspan import attention, plan
from longspan.engine.labels import ClippedDistance
from longspan.engine.packed import pack
from longspan.engine.split import split
from longspan.engine.terms import ScoreTable
from longspan.engine.watch import watched
from longspan.layout import Layout
from longspan.patterns import Full, Pattern, RandomBlocks, Window

LENGTHS = [200, 1, 64, 0, 333]
LAYOUT = Layout.packed(LENGTHS, marked=[[0, 150], [], [3], [], [332]])
PATTERNS: list[Pattern] = [Full(), Window(9), Window(9) | RandomBlocks(16, 2, "uniform", heads=2)]


@pytest.mark.parametrize("rows", [1, 64, 100, 256, 10_000])
@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_rows_of_parts_have_the_bits_of_the_whole(pattern: Pattern, rows: int) -> None:
    labels = ClippedDistance(5)
    whole = plan(pattern, LAYOUT, heads=2, labels=labels)
    q, k, v = torch.randn(3, LAYOUT.size, 2, 16, generator=torch.Generator().manual_seed(0))
    terms = [ScoreTable(torch.linspace(-1, 1, 2 * labels.size).view(labels.size, 2))]
    parts = split(whole, rows)
    found = [attention(q[some], k, v, part, terms=terms) for some, part in parts]
    assert torch.equal(torch.cat(found), attention(q, k, v, whole, terms=terms))
    assert [some.start for some, _ in parts[1:]] == [some.stop for some, _ in parts[:-1]]
    assert max(some.stop - some.start for some, _ in parts) <= max(rows, 64)
    assert len(parts) == 1 or rows < LAYOUT.size
    assert split(whole, rows) is parts


def test_parts_count_their_own_pairs() -> None:
    whole = plan(Window(9), LAYOUT, heads=2)
    parts = [part for _, part in split(whole, 100)]
    assert len(parts) > 4
    assert sum(part.pairs_allowed for part in parts) == whole.pairs_allowed
    assert sum(part.pairs_dense for part in parts) == whole.pairs_dense


def test_tiles_that_lie_across_each_other_stay_together() -> None:
    whole = plan(Window(9, dilation=3), Layout.packed([300, 300]), heads=2)
    assert [some.start for some, _ in split(whole, 64)] == [0, 192, 300, 492]


def test_heads_that_see_different_keys_are_cut_at_the_same_rows() -> None:
    pattern = Window((9, 40))
    whole = plan(pattern, LAYOUT, heads=2)
    q, k, v = torch.randn(3, LAYOUT.size, 2, 16, generator=torch.Generator().manual_seed(1))
    parts = split(whole, 128)
    assert len(parts) > 2
    assert torch.equal(torch.cat([attention(q[s], k, v, p) for s, p in parts]), attention(q, k, v, whole))


def test_who_looks_on_sees_the_whole() -> None:
    whole = plan(Window(9), LAYOUT, heads=2)
    packed = pack(whole)
    assert [part for _, part in split(packed, 64)] == [packed]
    with watched(lambda *_, **__: None):
        assert [part for _, part in split(whole, 64)] == [whole]


def test_no_rows_are_one_empty_part() -> None:
    empty = plan(Window(9), Layout.packed([]), heads=2)
    assert [some for some, _ in split(empty, 64)] == [slice(0, 0)]
