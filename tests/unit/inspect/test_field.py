"""The receptive field against products of dense boolean matrices."""

import numpy as np
import pytest

from longspan.families.attention_spec import AttentionSpec
from longspan.families.longformer.model import LongformerConfig
from longspan.families.poolingformer.model import PoolingformerConfig
from longspan.inspect.field import receptive_field
from longspan.inspect.stack import stack
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
from longspan.shapes import BoolArray
from unit.families.tiny import SIZES
from unit.inspect.models import layout_of, subjects


def sees(call: AttentionSpec, heads: int) -> BoolArray:
    found = [call.pattern.head(h).matrix(call.queries, call.keys) > 0 for h in range(heads)]
    together: BoolArray = np.logical_or.reduce(found)
    return together


def rows_of(call: AttentionSpec, layout: Layout) -> list[int]:
    """Which nodes the queries of a call are: all rows, the marked ones, or those of the second stream."""
    if call.queries.size == layout.size:
        return list(range(layout.size))
    marked = [int(row) for row in layout.marked_rows]
    if call.queries.size == len(marked) and call.keys.size == layout.size:
        return marked
    return list(range(layout.size, layout.size + call.queries.size))


def covered(call: AttentionSpec, layout: Layout) -> BoolArray:
    """(slots, rows): which rows are pooled into each slot, told row by row."""
    assert call.pooled is not None
    kernel, stride = call.pooled
    found, site = np.zeros((call.keys.size, layout.size), bool), layout.sites
    index = dict.fromkeys(range(layout.documents), 0)
    for slot, document in enumerate(call.keys.sites.document.tolist()):
        first = index[document] * stride - (kernel - stride) // 2
        inside = (site.position >= first) & (site.position < first + kernel)
        found[slot] = inside & (site.document == document)
        index[document] += 1
    return found


def knowledge(name: str, layout: Layout, nodes: int) -> list[BoolArray]:
    """(nodes, nodes) after each layer: who knows of whom, carried forward from layer to layer."""
    config = subjects()[name]
    known, after = np.eye(nodes, dtype=bool), []
    for layer in config.attention(layout):
        fresh = known.copy()
        for call in layer:
            if call.pooled:
                slots = covered(call, layout) @ fresh[: layout.size]
                fresh[: layout.size] |= sees(call, config.heads) @ slots
            else:
                fresh[rows_of(call, layout)] |= sees(call, config.heads) @ known[: call.keys.size]
        known = fresh
        after.append(known)
    return after


@pytest.mark.parametrize("name", subjects())
def test_the_field_is_the_product_of_the_layers(name: str) -> None:
    config, layout = subjects()[name], layout_of(name)
    found = receptive_field(config.attention(layout), layout, heads=config.heads)
    row = int(found.start.argmax())
    assert layout.sites.document[row] == 3
    expected = [known[row] for known in knowledge(name, layout, found.start.size)]
    assert np.array_equal(found.known, expected)
    assert found.tokens.tolist() == [int(one[: layout.size].sum()) for one in expected]


def test_the_middle_knows_of_itself_and_its_window() -> None:
    layout = Layout.packed([101])
    found = receptive_field(LongformerConfig(**SIZES, radius=(2, 3, 5)).attention(layout), layout, heads=2)
    assert found.tokens.tolist() == [5, 11, 21]
    assert found.complete is None
    assert found.reachable == 101


def test_a_global_token_completes_the_field() -> None:
    layout = Layout.packed([101, 7], marked=[[3], []])
    found = receptive_field(LongformerConfig(**SIZES, radius=2).attention(layout), layout, heads=2)
    assert found.tokens.tolist() == [6, 101, 101]
    assert found.complete == 2


def test_pooled_slots_carry_what_the_first_level_saw() -> None:
    layout = Layout.packed([400])
    config = PoolingformerConfig(
        **SIZES | {"positions": 400}, radius=3, wide_radius=8, kernel=5, stride=4, two_level=(0,)
    )
    found = receptive_field(config.attention(layout), layout, heads=2)
    seen = np.flatnonzero(found.known[0])
    assert seen.tolist() == list(range(seen[0], seen[-1] + 1))
    assert 2 * (8 + 3) < seen.size <= 2 * (8 + 2 + 3) + 1


@pytest.mark.parametrize("length", [1, 2])
def test_a_tiny_document_is_known_at_once(length: int) -> None:
    layout = Layout.packed([length])
    assert (
        receptive_field(LongformerConfig(**SIZES, radius=2).attention(layout), layout, heads=2).complete == 1
    )


@pytest.mark.parametrize(
    "patterns",
    [
        [Window(3)] * 4,
        [Window(5), Window(2, dilation=3), Window(1) & Causal()],
        [Window(3), Window(2) | GlobalTokens(), Window(4)],
        [Window((1, 8), dilation=(4, 1)), Window(2)],
        [(BlockWindow(16) | GlobalBlocks(16)) + RandomBlocks(16, 2, "uniform")],
        [Full()],
    ],
    ids=repr,
)
def test_the_field_of_a_stack_is_the_product_of_its_patterns(patterns: list[Pattern]) -> None:
    layout, heads = Layout.packed([60, 200], marked=[[], [0, 130]]), 2
    found = receptive_field(stack(patterns, heads).attention(layout), layout, heads=heads)
    known = np.eye(layout.size, dtype=bool)
    for depth, pattern in enumerate(patterns):
        edges = [pattern.head(h).matrix(layout) > 0 for h in range(heads)]
        known = known | (np.logical_or.reduce(edges) @ known)
        assert np.array_equal(found.known[depth], known[found.start.argmax()])
    assert found.start.argmax() == 60 + 100
