"""The report: fields, costs and graphs, and their picture as text."""

import re
from math import inf

import numpy as np
import pytest

from longspan.engine.plan import plan
from longspan.engine.report import Report, report
from longspan.errors import InputError
from longspan.layout import Layout
from longspan.patterns import (
    BlockWindow,
    Causal,
    Full,
    GlobalBlocks,
    GlobalTokens,
    Pattern,
    RandomBlocks,
    Window,
)
from longspan.patterns.graph import receptive_field

LAYOUT = Layout.packed([60, 200], marked=[[], [0, 130]])
STACKS = [
    [Window(3)] * 4,
    [Window(5), Window(2, dilation=3), Window(1) & Causal()],
    [Window(3), Window(2) | GlobalTokens(), Window(4)],
    [(BlockWindow(16) | GlobalBlocks(16)) + RandomBlocks(16, 2, "uniform")],
    [Full()],
]


@pytest.mark.parametrize("stack", STACKS, ids=repr)
def test_the_field_is_what_the_graph_says(stack: list[Pattern]) -> None:
    rows = np.flatnonzero((LAYOUT.sites.document == 1) & ~LAYOUT.sites.marked)
    fields = receptive_field(stack, LAYOUT, int(rows[rows.size // 2]))
    assert report(stack, LAYOUT, heads=1).field == fields[-1].sum()
    assert report(stack[-1], LAYOUT, heads=1).field == fields[1].sum()


def test_heads_widen_the_field_together() -> None:
    assert report(Window((1, 8), dilation=(4, 1)), LAYOUT, heads=2).field == 17


def test_costs_are_those_of_the_plans() -> None:
    stack = [Window(3), Window(9), Window(3)]
    plans = [plan(pattern, LAYOUT, heads=2) for pattern in stack]
    told = report(stack, LAYOUT, heads=2, size=32, gflops=50)
    assert told.pairs_allowed == sum(p.pairs_allowed for p in plans)
    assert told.pairs_computed == sum(p.pairs_computed for p in plans)
    assert told.pairs_dense == 3 * 2 * (60**2 + 200**2)
    assert told.plan_bytes == plans[0].arrays.nbytes + plans[1].arrays.nbytes
    assert told.seconds == pytest.approx(4 * 32 * told.pairs_computed / 50e9)
    assert told.layers[0] == told.layers[2]
    assert 0 < told.layers[0].scratch_bytes <= 8 << 20


def test_the_graph_is_measured_on_the_longest_document() -> None:
    graph = (
        report(Window(10) | GlobalTokens(), Layout.packed([5, 100], marked=[[0], [3]]), heads=1)
        .layers[0]
        .graph
    )
    assert graph.star
    assert graph.diameter == 2
    assert graph.second_eigenvalue is not None
    assert 0 < graph.second_eigenvalue < 1
    alone = report(Window(10), Layout.packed([5, 101]), heads=1).layers[0].graph
    assert not alone.star
    assert alone.diameter == 10
    assert report(Window(3, dilation=2), Layout.packed([99]), heads=1).layers[0].graph.diameter == inf


def test_a_large_graph_is_not_measured() -> None:
    layout = Layout.packed([3000])
    assert report(Window(10), layout, heads=1).layers[0].graph.diameter is None
    assert report(BlockWindow(16) | GlobalBlocks(16), layout, heads=1).layers[0].graph.diameter == 2


def test_equal_layers_stand_in_one_line() -> None:
    text = str(report([Window(3)] * 4 + [Full()], LAYOUT, heads=2))
    assert "0 to 3, each" in text
    assert len(re.findall(r"^layer \d: ", text, re.MULTILINE)) == 2
    assert re.search(r"^together +200 ", text, re.MULTILINE)


@pytest.mark.parametrize("layout", [Layout.packed([]), Layout.packed([0]), Layout.packed([1])])
def test_nothing_is_reported_of_nothing(layout: Layout) -> None:
    told = report([Window(3)], layout, heads=2)
    assert told.field == told.pairs_allowed // 2 == layout.size
    assert isinstance(told, Report)
    assert str(told)


def test_bad_numbers_are_named() -> None:
    with pytest.raises(InputError, match="`gflops` must be more than 0, but is 0"):
        report(Window(3), LAYOUT, heads=1, gflops=0)
    with pytest.raises(InputError, match="`size` must be at least 1, but is 0"):
        report(Window(3), LAYOUT, heads=1, size=0)
