"""A pattern as a graph: tokens are nodes, and an edge leads from a query to each key it may see.

docs/theory.md is about this graph. Counts do not matter here, only whether there is an edge. Where a pattern
is made of blocks, whole blocks are the nodes: they tell the same with fewer.
"""

from dataclasses import dataclass

import numpy as np

from longspan.errors import bad
from longspan.layout import Layout, Site
from longspan.patterns.base import Pattern
from longspan.shapes import BoolArray, FloatArray, IntArray

_MOST_NODES = 4096
_PROBES = 32
_SOON = 1024  # graphs of more nodes take longer to measure than a report should


@dataclass(frozen=True, kw_only=True)
class Graph:
    """What head 0 of a pattern can carry across the longest document."""

    star: bool
    "In each document a token sees all and is seen by all."
    diameter: int | None
    "Layers until every token can know of every other; None: never, or not measured."
    second_eigenvalue: float | None
    "Of the normalized adjacency: near 1 mixes slowly; None: not measured, over 1,024 nodes."

    def __str__(self) -> str:
        star = "a star" if self.star else "no star"
        if self.second_eigenvalue is None:
            return f"{star}, graph not measured"
        steps = "never connected" if self.diameter is None else f"diameter {self.diameter}"
        return f"{star}, {steps}, second eigenvalue {self.second_eigenvalue:.3f}"


def measure(pattern: Pattern, layout: Layout) -> Graph:
    """Star, diameter and second eigenvalue, the last two only where they are found soon."""
    star, longest = contains_star(pattern, layout), int(layout.lengths.argmax()) if layout.documents else 0
    nodes = -(-int(layout.lengths.max(initial=0)) // _block(pattern))
    if not 0 < nodes <= _SOON:
        return Graph(star=star, diameter=None, second_eigenvalue=None)
    steps = diameter(pattern, layout, document=longest)
    value = second_eigenvalue(pattern, layout, document=longest)
    return Graph(star=star, diameter=steps, second_eigenvalue=value)


def contains_star(pattern: Pattern, layout: Layout, *, head: int = 0) -> bool:
    """Each document has a token that sees all and is seen by all.

    >>> from longspan.patterns import GlobalTokens, Window
    >>> contains_star(Window(2) | GlobalTokens(), Layout.packed([50, 9], marked=[[7], [0]]))
    True
    >>> contains_star(Window(2), Layout.packed([50]))
    False
    """
    one_head = pattern.head(head)
    documents = (_tokens(layout, document) for document in range(layout.documents))
    return all(_star(one_head, site) for site in documents if site.position.size)


def diameter(pattern: Pattern, layout: Layout, *, document: int = 0, head: int = 0) -> int | None:
    """The layers needed until every token of a document can know of every other; None if it never can.

    >>> from longspan.patterns import Window
    >>> diameter(Window(2), Layout.packed([21]))
    10
    """
    edges = adjacency(pattern, layout, document=document, head=head)
    np.fill_diagonal(edges, True)  # a token knows itself through the residual
    powers = [edges]
    while not powers[-1].all():
        powers.append(_product(powers[-1], powers[-1]))
        if np.array_equal(powers[-1], powers[-2]):
            return None
    if len(powers) == 1:
        return int(len(edges) > 1 or _block(pattern) > 1)
    steps, within = 1 << (len(powers) - 2), powers[-2]
    for exponent in reversed(range(len(powers) - 2)):
        further = _product(within, powers[exponent])
        if not further.all():
            steps, within = steps + (1 << exponent), further
    return steps + 1


def second_eigenvalue(pattern: Pattern, layout: Layout, *, document: int = 0, head: int = 0) -> float:
    """The second largest eigenvalue of the normalized adjacency: near 1 mixes slowly, small mixes fast.

    Edges are read both ways, and the walk may stand still where a token sees itself.
    """
    edges = adjacency(pattern, layout, document=document, head=head)
    both: FloatArray = (edges | edges.T).astype(np.float64)
    scale = 1 / np.sqrt(np.maximum(both.sum(axis=1), 1))
    values = np.linalg.eigvalsh(scale[:, None] * both * scale)
    return float(values[-2]) if values.size > 1 else 0.0


def adjacency(pattern: Pattern, layout: Layout, *, document: int = 0, head: int = 0) -> BoolArray:
    """(nodes, nodes): who sees whom in one document, block by block if the pattern is made of blocks."""
    if not 0 <= document < layout.documents:
        raise bad("document", f"one of the layout's {layout.documents} documents", document)
    site = _tokens(layout, document)
    _, rows = np.unique(site.position // _block(pattern), return_index=True)
    if rows.size > _MOST_NODES:
        raise bad("layout", f"at most {_MOST_NODES} nodes per document", rows.size, "Take a shorter one.")
    nodes = site[rows]
    return pattern.head(head).count(nodes[:, None], nodes[None, :]) > 0


def _block(pattern: Pattern) -> int:
    return max(pattern.grain, 1)


def _tokens(layout: Layout, document: int) -> Site:
    site = layout.sites
    return site[np.flatnonzero((site.document == document) & site.exists)]


def _star(pattern: Pattern, site: Site) -> bool:
    """Candidates that fail at a few probes are dropped first, so that no full matrix is ever made."""
    size = site.position.size
    candidates: IntArray = np.arange(size)
    for probe in np.unique(np.linspace(0, size - 1, _PROBES).astype(int)):
        candidates = candidates[_mutual(pattern, site[candidates], site[[probe]])]
    return any(bool(_mutual(pattern, site[[i]], site).all()) for i in candidates)


def _mutual(pattern: Pattern, a: Site, b: Site) -> BoolArray:
    return (pattern.count(a, b) > 0) & (pattern.count(b, a) > 0)


def _product(a: BoolArray, b: BoolArray) -> BoolArray:
    """Where a step by `a` and then one by `b` leads."""
    return (a.astype(np.float32) @ b.astype(np.float32)) > 0
