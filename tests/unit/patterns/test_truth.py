"""Every registered pattern counts what a slow, plain predicate says."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from longspan.layout import Layout, Site
from longspan.patterns import (
    BlockWindow,
    Fixed,
    GlobalBlocks,
    Pattern,
    RandomBlocks,
    Spans,
    Strided,
    Window,
)
from sweep import sweep
from unit.patterns.places import PLACES


class Token(NamedTuple):
    """One row of a layout as plain numbers."""

    position: int
    last: int
    length: int
    marked: bool
    tags: dict[str, int]


def window(p: Any, q: Token, k: Token) -> int:
    steps, rest = divmod(k.position - q.position, p.dilation)
    return rest == 0 and (p.left is None or -steps <= p.left) and (p.right is None or steps <= p.right)


def global_blocks(p: Any, q: Token, k: Token) -> int:
    blocks = -(-q.length // p.block)
    return any(not p.first <= x.position // p.block < blocks - p.last for x in (q, k))


def random_blocks(p: Any, q: Token, k: Token) -> int:
    row, blocks = q.position // p.block, -(-q.length // p.block)
    return picks(p, blocks)[row].count(k.position // p.block) if row < blocks else 0


@cache
def picks(p: RandomBlocks, blocks: int) -> list[list[int]]:
    rows: list[list[int]] = p.picks(blocks).tolist()
    return rows


def strided(p: Any, q: Token, k: Token) -> int:
    distance = q.position - k.position
    return k.last <= q.position and (distance <= p.stride or distance % p.stride == 0)


def fixed(p: Any, q: Token, k: Token) -> int:
    summary = k.position % p.block in range(p.block - p.summary, p.block)
    return k.last <= q.position and (summary or q.position // p.block == k.position // p.block)


def belongs(p: Any, q: Token, k: Token) -> int:
    token, above = (k, q) if q.marked else (q, k)
    member = above.position in [token.tags.get(tag, -1) for tag in p.tags]
    return q.marked == k.marked or member or q.tags.get("free", 0) != 0


PREDICATES: dict[str, Callable[[Any, Token, Token], int]] = {
    "Full": lambda p, q, k: True,
    "Causal": lambda p, q, k: k.last <= q.position,
    "Window": window,
    "ToGlobal": lambda p, q, k: k.marked,
    "FromGlobal": lambda p, q, k: q.marked,
    "GlobalTokens": lambda p, q, k: q.marked or k.marked,
    "FromLocal": lambda p, q, k: not q.marked,
    "BlockWindow": lambda p, q, k: abs(q.position // p.block - k.position // p.block) <= p.radius,
    "GlobalBlocks": global_blocks,
    "RandomBlocks": random_blocks,
    "Strided": strided,
    "Fixed": fixed,
    "ByLength": lambda p, q, k: slow(p.short if q.length <= p.limit else p.long, q, k),
    "ToUntagged": lambda p, q, k: k.tags.get(p.tag, 0) == 0,
    "SameTag": lambda p, q, k: q.tags.get(p.tag, 0) == k.tags.get(p.tag, 0),
    "Belongs": belongs,
    "Union": lambda p, q, k: max(slow(part, q, k) for part in p.parts),
    "Intersection": lambda p, q, k: min(slow(part, q, k) for part in p.parts),
    "Sum": lambda p, q, k: sum(slow(part, q, k) for part in p.parts),
}


def slow(pattern: Pattern, q: Token, k: Token) -> int:
    return int(PREDICATES[type(pattern).__name__](pattern, q, k))


def tokens(site: Site) -> list[Token]:
    columns = (site.position, site.last, site.length, site.marked)
    tags = [{name: int(tag[i]) for name, tag in site.tags.items()} for i in range(site.position.size)]
    return [Token(*row) for row in zip(*(column.tolist() for column in columns), tags, strict=True)]


def test_every_registered_pattern_is_swept_and_has_a_predicate() -> None:
    assert set(Pattern.registry) == set(PREDICATES) == {type(pattern).__name__ for pattern in sweep()}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("pattern", sweep(), ids=repr)
def test_the_count_is_what_the_predicate_says(pattern: Pattern, place: str) -> None:
    queries, keys = PLACES[place]
    for head in range(pattern.heads_declared or 1):
        one = pattern.head(head)
        got = one.count(queries.sites[:, None], keys.sites[None, :])
        rows, columns = tokens(queries.sites), tokens(keys.sites)
        same = queries.sites.document[:, None] == keys.sites.document
        expected = np.array([[slow(one, q, k) for k in columns] for q in rows]).reshape(got.shape)
        np.testing.assert_array_equal(np.where(same, got, 0), np.where(same, expected, 0))


@pytest.mark.parametrize("pattern", sweep(), ids=repr)
def test_counts_broadcast_over_any_shape(pattern: Pattern) -> None:
    site, one = Layout.packed([30], marked=[[4]]).sites, pattern.head(0)
    whole = one.count(site[:, None], site[None, :])
    tiles = one.count(site[np.arange(30).reshape(5, 6)][:, :, None], site[None, None, :])
    assert whole.dtype.kind == "i"
    np.testing.assert_array_equal(tiles.reshape(30, 30), whole)


@pytest.mark.parametrize(
    "pattern",
    [
        Window(2**30 - 1, dilation=2**29),
        Window(left=2**30 - 1, right=0),
        BlockWindow(2**29, radius=2**30 - 1),
        BlockWindow(1, radius=2**30 - 1),
        GlobalBlocks(2**29, first=2**30 - 1, last=2**30 - 1),
        Strided(2**30 - 1),
        Fixed(2**30 - 1, summary=2**29),
    ],
    ids=repr,
)
def test_huge_values_are_counted_right_far_out(pattern: Pattern) -> None:
    site = Layout.packed([5], start=2**30 - 6).sites
    expected = [[slow(pattern, q, k) for k in tokens(site)] for q in tokens(site)]
    assert pattern.count(site[:, None], site[None, :]).tolist() == expected
    whole = Spans(site.position[:1], site.position[-1:], site.length[:1], np.zeros(1, bool), np.ones(1, bool))
    reach = pattern.reach(whole)
    assert reach.landmarks.any() or np.any((reach.lo <= 2**30 - 6) & (reach.hi >= 2**30 - 2))


def test_the_matrix_parts_documents_and_leaves_out_what_does_not_exist() -> None:
    layout = Layout.padded([[True, False, True], [True, True, False]])
    allowed = Pattern.registry["Full"]().matrix(layout)
    expected = np.zeros((6, 6), int)
    for a, b in [(0, 0), (0, 2), (2, 0), (2, 2), (3, 3), (3, 4), (4, 3), (4, 4)]:
        expected[a, b] = 1
    np.testing.assert_array_equal(allowed, expected)
