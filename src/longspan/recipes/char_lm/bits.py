"""Bits per character on long overlapping windows (Longformer, section 4.2)."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from longspan.errors import bad, whole
from longspan.families.char_lm.model import config_of, encode
from longspan.families.task_model import TaskModel, evaluating
from longspan.layout import Layout
from longspan.progress import progress_bar
from longspan.recipes.char_lm.texts import Bytes

BATCH = 16_384
"""Characters that are read at once; a longer window goes alone."""


class Bits(NamedTuple):
    """How well a text is predicted."""

    bits: float
    "Of all characters but the first, which nothing precedes."
    characters: int

    @property
    def per_character(self) -> float:
        """Their mean."""
        return self.bits / self.characters


class Window(NamedTuple):
    """Characters that are read together, and how many of the last are scored."""

    begin: int
    end: int
    scored: int


def windows(size: int, length: int, step: int) -> Iterator[Window]:
    """Windows of `length` over `size` characters: the first is scored wholly, of others the last `step`.

    >>> list(windows(10, 6, 3))
    [Window(begin=0, end=6, scored=6), Window(begin=3, end=9, scored=3), Window(begin=4, end=10, scored=1)]
    """
    end = min(length, size)
    yield Window(0, end, end)
    while end < size:
        scored = min(step, size - end)
        end += scored
        yield Window(end - length, end, scored)


def bits_of(model: TaskModel, text: Bytes, *, length: int, step: int, progress: bool | None = False) -> Bits:
    """The bits of a text, each character predicted from at least `length` - `step` before it.

    Where windows of that length hold all that a prediction can depend on, longer steps give the same bits,
    and are taken.
    """
    whole("step", step, 1)
    whole("length", length, step)
    if len(text) < 2:
        raise bad("data", "at least 2 characters long", len(text))
    config = config_of(model)
    if length - step >= config.receptive_field:
        step = max(step, BATCH - config.receptive_field)
        length = config.receptive_field + step
    ids = encode(config, text, "data").to(model.device)
    bits, size = 0.0, len(ids) - 1
    with (
        torch.no_grad(),
        evaluating(model),
        progress_bar(size, "characters", shown=progress, scale=True) as bar,
    ):
        for group in _batches(windows(size, length, step)):
            places = np.concatenate([np.arange(one.begin, one.end) for one in group])
            layout = Layout.packed([one.end - one.begin for one in group])
            x = model.backbone(ids[places], layout)
            ends = layout.lengths.cumsum()
            rows = np.concatenate(
                [np.arange(end - one.scored, end) for one, end in zip(group, ends, strict=True)]
            )
            logits = model.head(x[rows], layout).float()
            loss = F.cross_entropy(logits, ids[places[rows] + 1], reduction="none")
            bits += float(loss.double().sum()) / math.log(2)
            bar.update(len(rows))
            bar.status(f"{bits / max(1, int(places[-1]) + 1):.3f} bits per character")
    return Bits(bits, size)


def _batches(all_windows: Iterator[Window]) -> Iterator[list[Window]]:
    group, room = list[Window](), BATCH
    for window in all_windows:
        length = window.end - window.begin
        if group and length > room:
            yield group
            group, room = [], BATCH
        group.append(window)
        room -= length
    yield group
