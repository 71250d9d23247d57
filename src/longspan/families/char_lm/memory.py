"""Transformer-XL's memory: rows of an earlier segment that later ones see (Dai et al. 2019, section 3.2)."""

from functools import partial
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from longspan.errors import bad, whole
from longspan.families.char_lm.attention import rotations
from longspan.families.char_lm.model import CharLM
from longspan.layout import Layout
from longspan.nn.attention import CacheUpdate
from longspan.nn.encoder import EncoderLayer
from longspan.shapes import IntArray


class Memory(NamedTuple):
    """What each layer was given of the last rows of each document; nothing is differentiated through it."""

    states: tuple[Tensor, ...]
    "(M, C) for each layer, document after document."
    lengths: tuple[int, ...]
    "Rows of each document."


def read_on(
    model: CharLM, ids: Tensor, layout: Layout, memory: Memory | None = None, *, keep: int = 0
) -> tuple[Tensor, Memory]:
    """Hidden states (N, C) of the next segment of each document, and a memory of its last `keep` rows.

    Each document is a segment of its own, from position 0; its rows see those of the memory behind them, as
    far as the windows reach.
    """
    whole("keep", keep, 0)
    lengths = (0,) * layout.documents if memory is None else memory.lengths
    if len(lengths) != layout.documents:
        raise bad("memory", f"of {layout.documents} documents, as the layout", len(lengths))
    segment = Layout.packed(layout.lengths.tolist(), start=lengths)
    joined = Layout.join(Layout.packed(lengths), segment)
    old, turn = sum(lengths), None
    if (rope := model.config.angles) is not None:
        turn = rotations(rope, model.config.head_size, joined.sites.position[:old])
    kept = torch.from_numpy(_last(joined, keep))
    x, stack, states = model.embeddings(ids, layout), model.layers, list[Tensor]()
    for number, (layer, inputs) in enumerate(zip(stack, model.inputs_between(segment, joined), strict=True)):
        before = x.new_zeros(0, x.shape[1]) if memory is None else memory.states[number]
        states.append(torch.cat([before, x.detach()])[kept])
        own = model.finished(inputs)
        places = inputs[1] if turn is None else turn
        cache = _behind(cast(EncoderLayer, layer), before, places) if old else None
        run = partial(layer, cache=cache)
        x = stack.checkpointed(run, x, *own) if stack.recomputes() else run(x, *own)
    counts = np.bincount(joined.sites.document[kept.numpy()], minlength=layout.documents)
    return model.last_dropout(x), Memory(tuple(states), tuple(counts.tolist()))


def _behind(layer: EncoderLayer, before: Tensor, places: object) -> CacheUpdate:
    """What puts the keys and values of earlier rows (M, C) before those of new ones."""

    def update(k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        old_k, old_v = layer.attention.key_values(layer.normed(before), places)  # type: ignore[operator]
        return torch.cat([old_k, k]), torch.cat([old_v, v])

    return update


def _last(layout: Layout, keep: int) -> IntArray:
    """The last `keep` rows of each document, in order."""
    site = layout.sites
    order = np.lexsort((site.position, site.document))
    left = layout.lengths[site.document[order]] - site.position[order]
    return order[left <= keep]
