"""Windows of a long text as examples, and the loss of predicting each next byte."""

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan.errors import bad, whole
from longspan.families.char_lm.memory import read_on
from longspan.families.char_lm.model import CharLM, CharLMConfig, encode
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.recipes.char_lm.texts import Bytes
from longspan.shapes import IntArray
from longspan.training.source import Loss


class WindowBatch(NamedTuple):
    """Windows end to end, and what precedes each if the model has a memory."""

    ids: Tensor
    labels: Tensor
    "(N,) the byte after each."
    layout: Layout
    before: Tensor | None
    before_layout: Layout | None

    def to(self, device: torch.device) -> "WindowBatch":
        """The same on a device."""
        before = None if self.before is None else self.before.to(device)
        return self._replace(ids=self.ids.to(device), labels=self.labels.to(device), before=before)


@dataclass(frozen=True, eq=False)
class Windows:
    """A text as windows of `length` bytes: in each epoch every byte but the first is predicted once.

    Where the windows begin depends on (seed, epoch). The text is taken as a ring: a window that would go
    beyond its end is read as two, and the last one is shorter. With `memory` the bytes before each window
    are read, too, but not learnt from.
    """

    text: Bytes
    config: CharLMConfig
    length: int
    seed: int = 0
    memory: int = 0

    def __post_init__(self) -> None:
        whole("length", self.length, 1)
        whole("memory", self.memory, 0)
        if len(self.text) <= self.length:
            need = f"longer than a window of {self.length:,} bytes"
            raise bad("data", need, f"{len(self.text):,} bytes", "Give more text, or a smaller --length.")

    @property
    def _size(self) -> int:
        return len(self.text) - 1

    @cached_property
    def lengths(self) -> IntArray:
        """The bytes of each window."""
        full, rest = divmod(self._size, self.length)
        return np.array([self.length] * full + [rest] * bool(rest), np.int64)

    @property
    def digest(self) -> int:
        """A checksum of the text and of what is made of it."""
        how = self.length, self.seed, self.memory, self.config.alphabet
        return zlib.crc32(np.ascontiguousarray(self.text).data, zlib.crc32(repr(how).encode()))

    def batch(self, examples: IntArray, epoch: int) -> WindowBatch:
        """Some windows as they lie in an epoch."""
        (shift,) = np.random.SeedSequence((self.seed, epoch)).generate_state(1, np.uint64)
        begins = (int(shift) % self._size + examples * self.length) % self._size
        parts = list[tuple[int, int]]()
        for begin, length in zip(begins.tolist(), self.lengths[examples].tolist(), strict=True):
            end = begin + length
            parts += [(begin, end)] if end <= self._size else [(begin, self._size), (0, end - self._size)]
        layout = Layout.packed([end - begin for begin, end in parts])
        ids, labels = self._ids(parts), self._ids([(begin + 1, end + 1) for begin, end in parts])
        if not self.memory:
            return WindowBatch(ids, labels, layout, None, None)
        before = [(max(0, begin - self.memory), begin) for begin, _ in parts]
        behind = Layout.packed([end - begin for begin, end in before])
        return WindowBatch(ids, labels, layout, self._ids(before), behind)

    def _ids(self, parts: list[tuple[int, int]]) -> Tensor:
        text = np.concatenate([self.text[begin:end] for begin, end in parts])
        return encode(self.config, text, "data")


def next_byte_loss(model: nn.Module, batch: WindowBatch) -> Loss:
    """The cross-entropy of the byte after each, in nats."""
    if batch.before is None or batch.before_layout is None:
        logits: Tensor = model(batch.ids, batch.layout)
    else:
        reader = cast(TaskModel, model)
        backbone = cast(CharLM, reader.backbone)
        keep = int(batch.before_layout.lengths.max(initial=0))
        with torch.no_grad():
            _, memory = read_on(backbone, batch.before, batch.before_layout, keep=keep)
        x, _ = read_on(backbone, batch.ids, batch.layout, memory)
        logits = reader.head(x, batch.layout)
    total = F.cross_entropy(logits.float(), batch.labels, reduction="sum")
    return Loss(total, float(len(batch.labels)))
