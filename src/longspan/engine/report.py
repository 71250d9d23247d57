"""What a pattern, or a stack of layers, costs and reaches on a given layout, before anything is computed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import inf

import numpy as np

from longspan.engine.plan import Plan, plan
from longspan.engine.tiling import TILE
from longspan.errors import bad, whole
from longspan.layout import Layout
from longspan.patterns.base import Pattern
from longspan.patterns.graph import contains_star, diameter, second_eigenvalue
from longspan.shapes import BoolArray

FLOPS = 4
"""Floating-point operations per pair, head and dimension of a forward pass: two products and two sums."""
SPEED = 100.0
"""GFLOP/s that two cores with AVX-512 reach with care; give your own machine's for better estimates."""
NODES = 1024
"""Graphs of more nodes than this are not measured: it would take longer than a report should."""
_PACKED_BYTES = 8 << 20  # the most that a worker of the native kernel spends on packed tiles


@dataclass(frozen=True, kw_only=True)
class Graph:
    """The pattern of head 0 in the longest document, as a graph of tokens (or blocks)."""

    star: bool
    "A token of each document sees all and is seen by all."
    diameter: float | None
    "Layers until everyone can know of everyone; inf: never; None: not measured, over 1,024 nodes."
    second_eigenvalue: float | None
    "Of the normalised adjacency: near 1 mixes slowly; None: not measured, over 1,024 nodes."


@dataclass(frozen=True, kw_only=True)
class LayerReport:
    """One layer; pairs are summed over the heads."""

    pattern: Pattern
    field: int
    "Tokens that a token in the middle of the longest document knows of after this layer alone."
    pairs_allowed: int
    pairs_computed: int
    pairs_dense: int
    plan_bytes: int
    scratch_bytes: int
    "What each thread of the native kernel needs in a forward pass, about."
    seconds: float
    "Forward pass, estimated from the pairs computed."
    graph: Graph


@dataclass(frozen=True, kw_only=True)
class Report:
    """A stack of layers, first layer first."""

    layout: Layout
    heads: int
    size: int
    layers: tuple[LayerReport, ...]
    field: int
    "Tokens that a token in the middle of the longest document knows of after all layers."

    @cached_property
    def pairs_allowed(self) -> int:
        return sum(layer.pairs_allowed for layer in self.layers)

    @cached_property
    def pairs_computed(self) -> int:
        return sum(layer.pairs_computed for layer in self.layers)

    @cached_property
    def pairs_dense(self) -> int:
        return sum(layer.pairs_dense for layer in self.layers)

    @cached_property
    def seconds(self) -> float:
        return sum(layer.seconds for layer in self.layers)

    @cached_property
    def plan_bytes(self) -> int:
        """Equal layers share a plan."""
        return sum({layer.pattern: layer.plan_bytes for layer in self.layers}.values())

    def __str__(self) -> str:
        rows = [("layer", "sees", "pairs", "computed", "of full", "plan", "time"), *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = ["  ".join([row[0].ljust(widths[0]), *_right(row[1:], widths[1:])]) for row in rows]
        heading = f"{self.layout!r}, {self.heads} heads of size {self.size}"
        return "\n".join([heading, *table, *self._legend()])

    def _rows(self) -> Iterator[tuple[str, ...]]:
        first = 0
        for layer, run in groupby(self.layers):
            count = len(list(run))
            name = str(first) if count == 1 else f"{first} to {first + count - 1}, each"
            yield (name, f"{layer.field:,}", *_costs(layer))
            first += count
        yield ("together", f"{self.field:,}", *_costs(self))

    def _legend(self) -> Iterator[str]:
        first = 0
        for layer, run in groupby(self.layers):
            yield f"layer {first}: {layer.pattern!r}; {_graph(layer.graph)}"
            first += len(list(run))
        scratch = max((layer.scratch_bytes for layer in self.layers), default=0)
        yield f"scratch memory: about {scratch / 2**20:.1f} MB for each thread"


def report(
    layers: Pattern | Sequence[Pattern], layout: Layout, *, heads: int, size: int = 64, gflops: float = SPEED
) -> Report:
    """Receptive field, pairs, memory, time and graph of one pattern or of a stack, first layer first.

    >>> from longspan.patterns import Window
    >>> stack = report([Window(2)] * 3, Layout.packed([100]), heads=4)
    >>> stack.layers[0].field, stack.field
    (5, 13)
    """
    stack = [layers] if isinstance(layers, Pattern) else list(layers)
    size = whole("size", size, 1)
    if not gflops > 0:
        raise bad("gflops", "more than 0", gflops)
    plans = [plan(pattern, layout, heads=heads) for pattern in stack]
    made = {p.pattern: _layer(p, size, gflops) for p in plans}
    known = middle_row(layout)
    for p in reversed(plans):
        known = known | seen(p, known)
    told = tuple(made[pattern] for pattern in stack)
    return Report(layout=layout, heads=heads, size=size, layers=told, field=int(known.sum()))


def _layer(p: Plan, size: int, gflops: float) -> LayerReport:
    middle = middle_row(p.queries)
    return LayerReport(
        pattern=p.pattern,
        field=int((middle | seen(p, middle)).sum()),
        pairs_allowed=p.pairs_allowed,
        pairs_computed=p.pairs_computed,
        pairs_dense=p.pairs_dense,
        plan_bytes=p.arrays.nbytes,
        scratch_bytes=scratch(p, size),
        seconds=FLOPS * size * p.pairs_computed / (gflops * 1e9),
        graph=_measured(p.pattern, p.queries),
    )


def middle_row(layout: Layout) -> BoolArray:
    """(N,): the row in the middle of the longest document, an unmarked one if there is one."""
    site, known = layout.sites, np.zeros(layout.size, bool)
    if layout.documents:
        mates = site.exists & (site.document == layout.lengths.argmax())
        plain = mates & ~site.marked
        rows = np.flatnonzero(plain if plain.any() else mates)
        known[rows[rows.size // 2 : rows.size // 2 + 1]] = True
    return known


def seen(p: Plan, known: BoolArray) -> BoolArray:
    """(N,): the rows that the known rows see, in any head."""
    a = p.arrays
    q_rows, k_rows, (key, mask, *_) = a.q_rows.numpy(), a.k_rows.numpy(), a.entries.numpy().T
    tile = np.repeat(np.arange(len(q_rows)), np.diff(a.entry_start.numpy()))
    looks = np.append(known, False)[q_rows]  # (QT, 64); row -1 is the False
    some = np.flatnonzero(looks.any(axis=1)[tile])
    words = np.append(a.masks.numpy(), np.full((1, TILE), -1), axis=0)[mask[some]]  # mask -1 is the last
    union = np.bitwise_or.reduce(np.where(looks[tile[some]], words, 0), axis=1)
    bits = (union[:, None] >> np.arange(TILE) & 1).astype(bool)
    seen = np.zeros(p.keys.size + 1, bool)
    seen[k_rows[key[some]][bits]] = True
    return seen[:-1]


def scratch(p: Plan, size: int) -> int:
    """The packed keys and values of as many tiles as the longest list of entries needs, within a bound."""
    tile = 2 * TILE * size * 4
    longest = int(p.arrays.entry_start.diff().max()) if p.arrays.q_rows.shape[0] else 0
    return min(p.arrays.k_rows.shape[0], longest + 4, max(16, _PACKED_BYTES // tile)) * tile


def _measured(pattern: Pattern, layout: Layout) -> Graph:
    star = contains_star(pattern, layout)
    nodes = -(-int(layout.lengths.max(initial=0)) // max(pattern.grain, 1))
    if not 0 < nodes <= NODES:
        return Graph(star=star, diameter=None, second_eigenvalue=None)
    longest = int(layout.lengths.argmax())
    steps = diameter(pattern, layout, document=longest)
    value = second_eigenvalue(pattern, layout, document=longest)
    return Graph(star=star, diameter=inf if steps is None else steps, second_eigenvalue=value)


def _costs(cost: LayerReport | Report) -> tuple[str, ...]:
    share = cost.pairs_allowed / max(cost.pairs_dense, 1)
    pairs = f"{cost.pairs_allowed:,}", f"{cost.pairs_computed:,}", f"{share:.2%}"
    return (*pairs, f"{cost.plan_bytes / 2**20:.2f} MB", f"{cost.seconds * 1e3:.1f} ms")


def _graph(graph: Graph) -> str:
    star = "a star" if graph.star else "no star"
    if graph.diameter is None:
        return f"{star}, graph not measured"
    return f"{star}, diameter {graph.diameter}, second eigenvalue {graph.second_eigenvalue:.3f}"


def _right(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
