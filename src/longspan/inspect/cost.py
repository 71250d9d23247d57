"""What each attention costs, counted from its plan."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from longspan.engine.plan import Plan
from longspan.engine.tiling import TILE
from longspan.families.attention_spec import LayerSpecs
from longspan.families.config import EncoderConfig
from longspan.inspect.dry_run import Work
from longspan.inspect.field import nodes_of, seen_alone
from longspan.inspect.speed import FLOPS
from longspan.inspect.stack import Stack
from longspan.layout import Layout
from longspan.patterns.graph import Graph, measure
from longspan.patterns.panel import at_one_length

_PACKED_BYTES = 8 << 20  # the most that a thread of the native kernel spends on packed tiles


@dataclass(frozen=True, kw_only=True)
class AttentionCost:
    """One attention, the same in all of `layers`; pairs are those of one layer, summed over its heads."""

    layers: tuple[int, ...]
    name: str
    pattern: str
    words: str
    "What it lets see."
    sees: int
    "Tokens that a query in the middle of the longest document knows of by this attention alone."
    useful: int
    "Pairs of a query and a key that may attend."
    computed: int
    "Pairs that the kernel computes."
    share: float
    "Useful pairs as a share of full attention's."
    plan_bytes: int
    scratch_bytes: int
    "What each thread needs in a forward pass, about."
    flops: int
    graph: Graph | None
    "Of an attention among the document's own rows that is alone in its layers; None of others."


def attention_costs(
    calls: LayerSpecs, layout: Layout, config: EncoderConfig | Stack, work: Work
) -> Iterator[AttentionCost]:
    """Each distinct attention once, with the layers that compute it."""
    size, nodes = config.head_size, nodes_of(calls, layout)
    every = [call for layer in calls for call in layer]
    wider = dict.fromkeys(every, 1.0)
    if len(work.attentions) == len(every):  # a model may compute an attention in a form that costs more
        for call, (rows, _, heads, wide) in zip(every, work.attentions, strict=True):
            wider[call] = rows * heads * wide / max(call.queries.size * config.width, 1)
    for call in wider:
        layers = tuple(number for number, layer in enumerate(calls) if call in layer)
        alone = call.queries == call.keys == layout and all(len(calls[number]) == 1 for number in layers)
        planned, pattern = call.plan(config.heads), at_one_length(call.pattern, call.queries)
        yield AttentionCost(
            layers=layers,
            name=call.name,
            pattern=repr(pattern),
            words=call.summary or pattern.explain(),
            sees=seen_alone(call, layout, nodes, heads=config.heads),
            useful=planned.pairs_allowed,
            computed=planned.pairs_computed,
            share=planned.pairs_allowed / max(config.heads * dense_pairs(layout), 1),
            plan_bytes=planned.arrays.nbytes,
            scratch_bytes=_scratch_bytes(planned, size),
            flops=int(FLOPS * size * planned.pairs_computed * wider[call]),
            graph=measure(call.pattern, layout) if alone else None,
        )


def dense_pairs(layout: Layout) -> int:
    """Pairs of rows of the same document: what one head computes if every token sees every other."""
    site = layout.sites
    rows = np.bincount(site.document[site.exists], minlength=layout.documents)
    return int(rows @ rows)


def _scratch_bytes(planned: Plan, size: int) -> int:
    """The packed keys and values of as many tiles as the longest list of entries needs, within a bound."""
    arrays, tile = planned.arrays, 2 * TILE * size * 4
    longest = int(arrays.entry_start.diff().max()) if arrays.q_rows.shape[0] else 0
    return min(arrays.k_rows.shape[0], longest + 4, max(16, _PACKED_BYTES // tile)) * tile
