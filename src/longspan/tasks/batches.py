"""A task's inputs as its model takes them: tokenized once, with labels if there are any, in any batches."""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from longspan.errors import FARTHEST
from longspan.families.task_model import TaskModel
from longspan.pipeline.documents import Document, prepare
from longspan.pipeline.labels import Labeling, checked
from longspan.pipeline.options import Options
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import Pipeline, batched, say_what_is_cut
from longspan.shapes import IntArray
from longspan.tasks.base import Task


class Examples:
    """What a model reads of each input: one document or, of a long one, windows; or one for each choice.

    A training run takes it: `lengths`, and `batch` of some of them.
    """

    def __init__(
        self, reading: "Read", pieces: Sequence[Document], owner: IntArray, targets: Sequence[object]
    ) -> None:
        self._read, self._pieces, self._owner, self._targets = reading, pieces, owner, targets
        labeled = reading.given is not None
        self._more = (
            [reading.task.label_tokens(target) for target in targets] if labeled else [0] * len(pieces)
        )
        sizes = [len(piece.pieces[0].rows) for piece in pieces]
        self._lengths = np.bincount(owner, np.add(sizes, self._more)).astype(np.int64)

    @property
    def lengths(self) -> IntArray:
        """The tokens of each example, and those that its labels take."""
        return self._lengths

    @property
    def digest(self) -> int:
        """A checksum of what is read, and of its labels as they were given."""
        total = zlib.crc32(self._owner.tobytes())
        for piece in self._pieces:
            rows = piece.pieces[0].rows
            for column in (piece.encoding.ids[rows], piece.marked[rows]):
                total = zlib.crc32(column.tobytes(), total)
        if (given := self._read.given) is not None:
            said = json.dumps([given.labels, given.classes, given.problem], default=_plain)
            total = zlib.crc32(said.encode(), total)
        return total

    @property
    def pieces(self) -> int:
        """How many pieces all examples have, windows of long documents counted one by one."""
        return len(self._pieces)

    def batch(self, examples: IntArray, epoch: int = 0) -> Batch:
        """Some examples together."""
        ends = np.searchsorted(self._owner, [examples, np.add(examples, 1)])
        chosen = [number for begin, end in ends.T for number in range(begin, end)]
        settings = self._read.settings.but(budget=FARTHEST, deterministic=False)
        (batch,) = self._packed(chosen, settings)
        return batch

    def batches(self) -> list[Batch]:
        """All of them, in batches of the Reader's budget."""
        return self._packed(range(len(self._pieces)), self._read.settings)

    def _packed(self, chosen: Sequence[int], settings: Options) -> list[Batch]:
        """Some pieces in batches of the budget, those of one example together where they are compared."""
        read, pieces = self._read, [self._pieces[number] for number in chosen]
        if read.given is None:
            return batched(read.model, pieces, settings)
        more = [self._more[number] for number in chosen]
        together = [int(self._owner[number]) for number in chosen] if read.compared else None
        made = batched(read.model, pieces, settings, more=more, together=together)
        return [
            read.task.attach(batch, [self._targets[chosen[i]] for i in batch.index], read.given)
            for batch in made
        ]


class Read(NamedTuple):
    """How examples are read."""

    task: Task
    model: TaskModel
    settings: Options
    compared: bool
    "Whether the pieces of an example are compared with each other, and share a batch."
    given: Labeling | None
    "Their labels, if they have any."


def _plain(label: Any) -> object:
    """An array or a number of numpy or torch as JSON has it."""
    return label.tolist() if hasattr(label, "tolist") else repr(label)


def examples(
    task: Task,
    pipeline: Pipeline,
    inputs: Sequence[object],
    labels: Iterable[object] | None,
    known: tuple[Sequence[str], str | None, str],
    options: Mapping[str, object],
) -> Examples:
    """The inputs of a task, read; `known` are the classes, the kind of problem and the prompt."""
    model, settings = pipeline.model, pipeline.options.but(**options)
    classes, problem, prompt = known
    taken = task.inputs(*inputs)
    many, read = checked(labels, taken), task.expand(taken)
    encodings = task.encode(pipeline.tokenizer, read, prompt)
    documents = prepare(model, task, read.names, encodings, settings)
    say_what_is_cut(documents)
    owners = list(range(len(documents)))
    if read is not taken:  # what is compared stands under one name
        groups = enumerate(groupby(read.names))
        owners = [number for number, (_, alike) in groups for _ in alike]
    pieces = [replace(document, pieces=[piece]) for document in documents for piece in document.pieces]
    owner = [own for own, document in zip(owners, documents, strict=True) for _ in document.pieces]
    given, targets = None, list[Any]()
    if many is not None:
        given = Labeling(many, taken, documents, classes, problem, pipeline.tokenizer, model, settings)
        targets = task.targets(given)
    reading = Read(task, model, settings, read is not taken, given)
    return Examples(reading, pieces, np.array(owner, np.int64), targets)
