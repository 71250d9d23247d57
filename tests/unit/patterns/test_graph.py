"""Patterns as graphs: stars, diameters, eigenvalues."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from longspan.errors import InputError
from longspan.layout import Layout
from longspan.patterns import (
    BlockWindow,
    ByLength,
    Causal,
    Full,
    GlobalBlocks,
    GlobalTokens,
    Pattern,
    RandomBlocks,
    ToGlobal,
    Window,
)
from longspan.patterns.graph import adjacency, contains_star, diameter, measure, second_eigenvalue

BIGBIRDS = [
    ByLength(704, Full(), (BlockWindow(64) | GlobalBlocks(64)) + RandomBlocks(64, 3, plan, seed=1))
    for plan in ("tf", "hf-train", "hf-eval", "uniform", "none")
]


@pytest.mark.parametrize(
    "pattern", [Window(16) | GlobalTokens(), Window(4, dilation=3) | GlobalTokens()], ids=repr
)
def test_every_longformer_document_has_a_star(pattern: Pattern) -> None:
    assert contains_star(pattern, Layout.packed([300, 1, 77, 0, 500], marked=[[0], [0], [5, 6], [], [499]]))


def test_a_padded_longformer_batch_has_a_star_in_every_document() -> None:
    mask = np.arange(40) < np.array([[40], [17], [1]])
    marked = np.zeros_like(mask)
    marked[:, 0] = True
    assert contains_star(Window(3) | GlobalTokens(), Layout.padded(mask, marked=marked))


@pytest.mark.parametrize("pattern", BIGBIRDS, ids=repr)
def test_every_bigbird_document_has_a_star_for_every_head(pattern: Pattern) -> None:
    layout = Layout.packed([64, 704, 705, 1024, 1500])
    assert all(contains_star(pattern, layout, head=head) for head in range(3))


def test_one_document_without_a_star_is_enough_to_say_no() -> None:
    assert not contains_star(Window(3) | GlobalTokens(), Layout.packed([30, 30], marked=[[0], []]))


@pytest.mark.parametrize("pattern", [Window(5), Window(5) | ToGlobal(), Causal(), BlockWindow(4)], ids=repr)
def test_there_is_no_star_without_two_way_globals(pattern: Pattern) -> None:
    assert not contains_star(pattern, Layout.packed([100], marked=[[0, 50]]))


def test_the_diameter_of_a_window_grows_with_the_length() -> None:
    assert [diameter(Window(4), Layout.packed([n])) for n in (5, 6, 65, 129, 257)] == [1, 2, 16, 32, 64]


def test_with_random_blocks_the_diameter_grows_like_the_logarithm() -> None:
    pattern = BlockWindow(8) | RandomBlocks(8, 3, "uniform", seed=1)
    sizes = [32, 64, 128, 256]
    found = [diameter(pattern, Layout.packed([8 * blocks])) for blocks in sizes]
    assert all(d is not None and d <= 1.2 * np.log2(blocks) for d, blocks in zip(found, sizes, strict=True))
    assert [diameter(BlockWindow(8), Layout.packed([8 * blocks])) for blocks in sizes] == [31, 63, 127, 255]


def test_a_star_makes_the_diameter_two() -> None:
    assert diameter(Window(2) | GlobalTokens(), Layout.packed([90], marked=[[3]])) == 2
    assert diameter(BlockWindow(8) | GlobalBlocks(8), Layout.packed([800])) == 2


def test_the_published_draws_leave_the_diameter_linear() -> None:
    """They draw from a document's first blocks only, so nothing carries the end to the beginning."""
    pattern = BlockWindow(64) | RandomBlocks(64, 3, "tf")
    found = [diameter(pattern, Layout.packed([n])) for n in (1536, 5120)]
    assert found[0] is not None
    assert found[0] > 10
    assert found[1] is not None
    assert found[1] > 60


@pytest.mark.parametrize("n", [1024, 4096, 16384])
def test_the_page_on_theory_tells_what_the_graphs_say(n: int) -> None:
    window, star = BlockWindow(64), GlobalBlocks(64)
    rows = [
        window,
        *(window | RandomBlocks(64, 3, plan) for plan in ("uniform", "tf", "hf-eval")),
        window | star,
    ]
    rows += [window | star | RandomBlocks(64, 3, plan) for plan in ("uniform", "tf")]
    page = (Path(__file__).parents[3] / "docs/theory.md").read_text(encoding="utf-8")
    table = [line.split("|")[2:-1] for line in page.splitlines() if line.endswith((" |",)) and "0." in line]
    layout, column = Layout.packed([n]), [1024, 4096, 16384].index(n)
    assert [int(cells[column]) for cells in table] == [diameter(pattern, layout) for pattern in rows]
    if n == 4096:
        values = [f"{second_eigenvalue(pattern, layout):.3f}" for pattern in rows]
        assert [cells[3].strip() for cells in table] == values


def test_some_graphs_never_connect() -> None:
    assert diameter(Causal(), Layout.packed([9])) is None
    assert diameter(Window(1, dilation=2), Layout.packed([9])) is None
    assert diameter(Full(), Layout.packed([1])) == 0
    assert diameter(Full(), Layout.packed([9])) == 1


def test_the_diameter_is_what_breadth_first_search_finds() -> None:
    layout = Layout.packed([40], marked=[[7]])
    for pattern in [Window(3, dilation=1), Window(left=2, right=5), Window(2) | ToGlobal()]:
        edges = adjacency(pattern, layout)
        depths = []
        for start in range(len(edges)):
            known, depth = {start}, 0
            while len(known) < len(edges):
                known |= {int(j) for i in known for j in np.flatnonzero(edges[i])}
                depth += 1
            depths.append(depth)
        assert diameter(pattern, layout) == max(depths)


def test_random_blocks_open_the_spectral_gap() -> None:
    layout = Layout.packed([8 * 128])
    window = second_eigenvalue(BlockWindow(8), layout)
    mixed = second_eigenvalue(BlockWindow(8) | RandomBlocks(8, 3, "uniform"), layout)
    assert window > 0.99
    assert mixed < 0.8
    assert second_eigenvalue(Full(), Layout.packed([90])) == pytest.approx(0)


def test_the_graph_is_measured_on_the_longest_document() -> None:
    graph = measure(Window(10) | GlobalTokens(), Layout.packed([5, 100], marked=[[0], [3]]))
    assert (graph.star, graph.diameter) == (True, 2)
    assert graph.second_eigenvalue is not None
    assert 0 < graph.second_eigenvalue < 1
    assert str(graph).startswith("a star, diameter 2, second eigenvalue 0.")
    assert measure(Window(10), Layout.packed([5, 101])).diameter == 10
    assert "no star, never connected" in str(measure(Window(3, dilation=2), Layout.packed([99])))


def test_a_large_graph_is_not_measured() -> None:
    layout = Layout.packed([3000])
    assert str(measure(Window(10), layout)) == "no star, graph not measured"
    assert measure(BlockWindow(16) | GlobalBlocks(16), layout).diameter == 2


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (
            lambda: adjacency(Full(), Layout.packed([3]), document=1),
            "one of the layout's 1 documents, but is 1",
        ),
        (lambda: adjacency(Window(1), Layout.packed([5000])), "at most 4096 nodes per document, but is 5000"),
    ],
)
def test_bad_questions_are_refused(ask: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError) as caught:
        ask()
    assert words in str(caught.value)
