"""The layers as panels: layers that attend alike share one, and so do attentions between the same rows."""

from collections.abc import Iterator, Sequence

import numpy as np

from longspan.families.attention_spec import AttentionSpec, LayerSpecs
from longspan.inspect.field import Nodes, nodes_of
from longspan.layout import Layout
from longspan.patterns.panel import MOST_PANELS, Panel, Source, at_one_length, head_groups, panel
from longspan.shapes import IntArray
from longspan.words import numbered


def layer_panels(calls: LayerSpecs, layout: Layout, *, heads: int, cells: int) -> tuple[list[Panel], int]:
    """The panels of at most `cells` rows and columns, and how many more there would be."""
    nodes = nodes_of(calls, layout)
    layers: dict[tuple[AttentionSpec, ...], list[int]] = {}
    for number, layer in enumerate(calls):
        for group in _joint(layer, nodes):
            layers.setdefault(group, []).append(number)
    plans: list[tuple[str, tuple[AttentionSpec, ...], int]] = []
    for group, numbers in layers.items():
        kinds = head_groups([call.pattern for call in group], range(heads))
        for head, name in kinds:
            plans.append((numbered("layer", numbers) + f", {name}" * (len(kinds) > 1), group, head))
    panels = [_panel(title, group, head, layout, nodes, cells) for title, group, head in plans[:MOST_PANELS]]
    return panels, len(plans) - len(panels)


def _joint(calls: Sequence[AttentionSpec], nodes: Nodes) -> Iterator[tuple[AttentionSpec, ...]]:
    """Attentions that look at the same keys from the same rows, or from some of them."""
    waiting = list(calls)
    while waiting:
        first = waiting[0]
        group = tuple(
            call
            for call in waiting
            if call.keys == first.keys and np.isin(nodes[call.queries], nodes[first.queries]).all()
        )
        waiting = [call for call in waiting if call not in group]
        yield group


def _panel(
    title: str, group: Sequence[AttentionSpec], head: int, layout: Layout, nodes: Nodes, cells: int
) -> Panel:
    sides = group[0].queries, group[0].keys
    sources = [
        Source(
            call.pattern, head, call.queries, call.keys, _rows(call, sides[0], nodes), call.name, _words(call)
        )
        for call in group
    ]
    # Blocks stand in the documents of the model; marks that no pattern reads mean something else.
    rows, columns = (layout if side.size == layout.size else side for side in sides)
    marks = any(at_one_length(call.pattern.head(head), call.queries).splits_marked for call in group)
    return panel(title, sources, rows, columns, cells=cells, marks=marks)


def _words(call: AttentionSpec) -> str:
    if call.pooled and not call.summary:
        kernel, stride = call.pooled
        return f"Keys are slots of {kernel} tokens, one for every {stride}. {call.pattern.explain()}"
    return call.summary


def _rows(call: AttentionSpec, queries: Layout, nodes: Nodes) -> IntArray:
    """(rows of the panel,): the query of the attention that stands there, -1 for none."""
    row_of = np.full(max(int(rows.max(initial=-1)) for rows in nodes.values()) + 1, -1)
    row_of[nodes[call.queries]] = np.arange(call.queries.size)
    rows: IntArray = row_of[nodes[queries]]
    return rows
