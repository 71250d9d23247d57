"""The order of examples: a function of seed, epoch and position, so that no state can be lost or be wrong.

Two integers say where a run is, whatever the number of processes: every example once in an epoch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longspan.errors import bad, whole
from longspan.shapes import IntArray
from longspan.shuffled import shuffled

BLOCK = 4096
"""Positions that are looked at together."""


class Cursor(NamedTuple):
    """Where a run is in its data."""

    epoch: int
    position: int
    "How many examples of the epoch are done."


class StepExamples(NamedTuple):
    """The examples of one update of the weights."""

    epoch: int
    batches: list[IntArray]
    "Which examples are read together, in micro-batches for all processes."
    tokens: int
    after: Cursor
    "Where the next step begins."


@dataclass(frozen=True, eq=False)
class Order:
    """Examples of known lengths, cut into steps and micro-batches.

    A step holds at most `batch_tokens` tokens and `batch_size` examples, at least one; it ends with the
    epoch. A micro-batch holds at most `micro_tokens`; a longer example goes alone.
    """

    lengths: IntArray
    batch_tokens: int | None = None
    batch_size: int | None = None
    micro_tokens: int = 8192
    seed: int = 0

    def __post_init__(self) -> None:
        if not len(self.lengths):
            raise bad("data", "at least one example", "empty")
        if self.lengths.min() < 1:
            first = int(self.lengths.argmin())
            raise bad(f"data[{first}]", "at least one token long", int(self.lengths[first]))
        if self.batch_tokens is None and self.batch_size is None:
            raise bad("batch_size", "given, or batch_tokens", None)
        for name in ("batch_tokens", "batch_size", "micro_tokens"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), 1)

    def step(self, cursor: Cursor) -> StepExamples:
        """What the step at a cursor holds."""
        examples, taken = self._taken(cursor)
        position = cursor.position + len(examples)
        ends = position >= len(self.lengths)
        after = Cursor(cursor.epoch + 1, 0) if ends else Cursor(cursor.epoch, position)
        return StepExamples(cursor.epoch, self._batches(examples, taken), int(taken.sum()), after)

    def steps(self, begin: Cursor, epochs: int) -> Iterator[StepExamples]:
        """All steps from a cursor to the end of an epoch."""
        while begin.epoch < epochs:
            step = self.step(begin)
            yield step
            begin = step.after

    def count_steps(self, epochs: int) -> int:
        """How many steps some epochs have: they differ, as lengths fall together differently."""
        total = 0
        for epoch in range(epochs):
            order = shuffled(np.arange(len(self.lengths)), len(self.lengths), (self.seed, epoch))
            ends = self.lengths[order].cumsum()
            begin = 0
            while begin < len(ends):
                begin += self._fitting(ends[begin:], int(ends[begin - 1]) if begin else 0)
                total += 1
        return total

    def largest(self) -> IntArray:
        """A micro-batch as large as any can be: the longest example, and others that fit beside it."""
        order = np.argsort(-self.lengths, kind="stable")
        falling, most = -self.lengths[order], min(self.batch_size or len(order), len(order))
        room = min(self.micro_tokens, self.batch_tokens or self.micro_tokens)
        chosen, place = list[int](), 0
        while len(chosen) < most and place < len(order):
            chosen.append(place)
            room += int(falling[place])
            place = max(place + 1, int(np.searchsorted(falling, -room)))  # the longest that fits
        return order[chosen]

    def _taken(self, cursor: Cursor) -> tuple[IntArray, IntArray]:
        """The examples of a step, and their lengths."""
        count, size = len(self.lengths), BLOCK
        while True:
            stop = min(count, cursor.position + size)
            examples = shuffled(np.arange(cursor.position, stop), count, (self.seed, cursor.epoch))
            lengths = self.lengths[examples]
            fitting = self._fitting(lengths.cumsum(), 0)
            if fitting < len(lengths) or stop == count:
                return examples[:fitting], lengths[:fitting]
            size *= 4

    def _fitting(self, ends: IntArray, begin: int) -> int:
        """How many of the next examples a step holds; `ends` are the sums of their lengths."""
        most = len(ends) if self.batch_size is None else min(self.batch_size, len(ends))
        if self.batch_tokens is not None:
            most = min(most, int(ends.searchsorted(begin + self.batch_tokens, side="right")))
        return max(most, 1)

    def _batches(self, examples: IntArray, lengths: IntArray) -> list[IntArray]:
        """Micro-batches, of like lengths each: the longest first."""
        order = np.argsort(-lengths, kind="stable")
        batches, begin, room = [], 0, self.micro_tokens
        for place, length in enumerate(lengths[order].tolist()):
            if place > begin and length > room:
                batches.append(examples[order[begin:place]])
                begin, room = place, self.micro_tokens
            room -= length
        return [*batches, examples[order[begin:]]]
