"""Steps of the decoder: all texts that are being written take one together, each after its own past."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from longspan.engine.plan import Plan, plan
from longspan.engine.tiling import TILE
from longspan.layout import Layout
from longspan.models.writer import Writer
from longspan.nn.decoder import Looks, Rows, Seen
from longspan.patterns import Full
from longspan.shapes import IntArray


class Begun(Protocol):
    """Texts about one document."""

    tokens: IntArray
    "(R, 1 + n) what was written."
    rows: IntArray
    "(R, n) where the decoder's rows of all but the last tokens are kept."


class Steps:
    """What was read of documents, once, and the decoder's rows of all that is written about them.

    Rows stay where they were put, at most `most`; texts that begin alike share them.
    """

    def __init__(self, model: Writer, ids: Tensor, layout: Layout, most: int) -> None:
        self._model, self._layout, self._device = model, layout, ids.device
        self._seen = [_by_head(one) for one in model.decoder.seen(model.body(ids, layout))]
        self._past = [Rows(most) for _ in self._seen]
        self._kept = 0
        self._shape: tuple[object, ...] = ()
        self._plans: tuple[Plan, Plan] | None = None

    def take(self, live: Mapping[int, Begun]) -> tuple[Tensor, IntArray]:
        """Scores (R, vocab) of what comes behind the texts about some documents, and the rows (R,) added."""
        begun = list(live.values())
        tokens = np.concatenate([one.tokens[:, -1] for one in begun])
        rows = self._kept + np.arange(len(tokens))
        self._kept += len(rows)
        own = np.concatenate([np.concatenate([one.rows for one in begun]), rows[:, None]], axis=1)
        place = Layout.packed([1] * len(rows), start=own.shape[1] - 1)
        x = torch.from_numpy(tokens).to(self._device)
        x = self._model.decoder(x, place, self._seen, self._looks(live, own), self._past)
        return self._model.scores(x).float().cpu(), rows

    def _looks(self, live: Mapping[int, Begun], own: IntArray) -> Looks:
        """Each text sees its `own` rows (R, n), wherever they are, and all that was read of its document.

        Plans are for whole tiles of rows, so that they serve for many steps.
        """
        count, length = own.shape
        size = -(-length // TILE) * TILE
        counts = tuple(len(live[d].tokens) if d in live else 0 for d in range(self._layout.documents))
        if self._plans is None or self._shape != (counts, size):
            heads, texts = self._model.body.config.heads, Layout.packed([1] * count)
            back = plan(Full(), texts, Layout.packed([size] * count), heads=heads)
            across = plan(Full(), Layout.packed(counts), self._layout, heads=heads)
            self._shape, self._plans = (counts, size), (back, across)
        back, across = self._plans
        own = np.pad(own, ((0, 0), (0, size - length)), constant_values=-1)
        return Looks(back.gathered(own.reshape(-1), self._kept), across)


def _by_head(seen: Seen) -> Seen:
    """The same keys and values (K, H, D), those of a head side by side in memory, as steps read them."""
    k, v = (part.transpose(0, 1).contiguous().transpose(0, 1) for part in seen)
    return k, v
