"""Decoding steps: all unfinished texts take one together, each after its own past."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from longspan.engine.plan import Plan, plan
from longspan.engine.tiling import TILE
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.layout import Layout
from longspan.nn.decoder import DecoderPlans, KeyValues, KVCache
from longspan.patterns import Full
from longspan.shapes import IntArray


class Unfinished(Protocol):
    """Texts about one document."""

    tokens: IntArray
    "(R, 1 + n) the start token and what was generated."
    rows: IntArray
    "(R, n) the cache rows of all but the last tokens."


class DecoderState:
    """What the encoder made of the documents, and the caches of everything that is generated about them.

    Cache rows stay where they are, at most `most` of them; texts that begin alike share them.
    """

    def __init__(self, model: Seq2SeqLM, ids: Tensor, layout: Layout, most: int) -> None:
        self._model, self._layout, self._device = model, layout, ids.device
        memory = model.backbone(ids, layout)
        self._key_values = [_by_head(pair) for pair in model.decoder.key_values(memory)]
        self._caches = [KVCache(most) for _ in self._key_values]
        self._kept = 0
        self._shape: tuple[object, ...] = ()
        self._plans: tuple[Plan, Plan] | None = None

    def step(self, live: Mapping[int, Unfinished]) -> tuple[Tensor, IntArray]:
        """Logits (R, vocab) for the next words of the texts about some documents, and their cache rows."""
        texts = list(live.values())
        tokens = np.concatenate([one.tokens[:, -1] for one in texts])
        rows = self._kept + np.arange(len(tokens))
        self._kept += len(rows)
        own = np.concatenate([np.concatenate([one.rows for one in texts]), rows[:, None]], axis=1)
        place = Layout.packed([1] * len(rows), start=own.shape[1] - 1)
        x = torch.from_numpy(tokens).to(self._device)
        x = self._model.decoder(x, place, self._key_values, self._step_plans(live, own), self._caches)
        return self._model.logits(x).float().cpu(), rows

    def _step_plans(self, live: Mapping[int, Unfinished], own: IntArray) -> DecoderPlans:
        """Each text sees its `own` rows (R, n), wherever they are, and all that was read of its document.

        Plans are for whole tiles of rows, so that they serve for many steps.
        """
        count, length = own.shape
        size = -(-length // TILE) * TILE
        counts = tuple(len(live[d].tokens) if d in live else 0 for d in range(self._layout.documents))
        if self._plans is None or self._shape != (counts, size):
            heads, texts = self._model.backbone.config.heads, Layout.packed([1] * count)
            back = plan(Full(), texts, Layout.packed([size] * count), heads=heads)
            across = plan(Full(), Layout.packed(counts), self._layout, heads=heads)
            self._shape, self._plans = (counts, size), (back, across)
        back, across = self._plans
        own = np.pad(own, ((0, 0), (0, size - length)), constant_values=-1)
        return DecoderPlans(back.gathered(own.reshape(-1), self._kept), across)


def _by_head(key_values: KeyValues) -> KeyValues:
    """The same keys and values (K, H, D), those of a head side by side in memory, as steps read them."""
    k, v = (part.transpose(0, 1).contiguous().transpose(0, 1) for part in key_values)
    return k, v
