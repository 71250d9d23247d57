"""A task's inputs as its model takes them: tokenized once, with labels if there are any, in any batches."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np

from longspan.pipeline.documents import Document, prepare
from longspan.pipeline.labels import Labeling, checked
from longspan.pipeline.options import Options
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import Pipeline, batched, say_what_is_cut
from longspan.shapes import IntArray
from longspan.tasks.base import Task


@dataclass(frozen=True, eq=False)
class Examples:
    """What a model reads of each input: one document or, of a long one, windows; or one for each choice.

    It is what a training run takes: `lengths`, and `batch` of some of them.
    """

    task: Task
    pipeline: Pipeline
    settings: Options
    pieces: list[Document]
    "Documents of one piece each."
    owner: IntArray
    "The example that each piece belongs to."
    compared: bool
    "Whether the pieces of an example are compared with each other, and share a batch."
    given: Labeling | None
    targets: list[Any]
    "The label of each piece, if there are labels."

    @cached_property
    def lengths(self) -> IntArray:
        """The tokens of each example, and those that its labels take."""
        sizes = [len(piece.pieces[0].rows) for piece in self.pieces]
        tokens = np.add(sizes, self._label_tokens) if self.given is not None else np.array(sizes)
        return np.bincount(self.owner, tokens).astype(np.int64)

    @cached_property
    def _label_tokens(self) -> list[int]:
        return [self.task.label_tokens(target) for target in self.targets]

    def batch(self, examples: IntArray, epoch: int = 0) -> Batch:
        """Some examples together."""
        ends = np.searchsorted(self.owner, [examples, examples + 1])
        chosen = [number for begin, end in ends.T for number in range(begin, end)]
        (batch,) = self.packed(chosen, self.settings.but(budget=2**30 - 1, deterministic=False))
        return batch

    def packed(self, chosen: Sequence[int], settings: Options) -> list[Batch]:
        """Some pieces in batches of the budget, those of one example together where they are compared."""
        pieces = [self.pieces[number] for number in chosen]
        if self.given is None:
            return batched(self.pipeline.model, pieces, settings)
        more = [self._label_tokens[number] for number in chosen]
        compared = [int(self.owner[number]) for number in chosen] if self.compared else None
        batches = batched(self.pipeline.model, pieces, settings, more=more, together=compared)
        return [
            self.task.attach(batch, [self.targets[chosen[i]] for i in batch.index], self.given)
            for batch in batches
        ]


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
    compared = read is not taken
    return Examples(task, pipeline, settings, pieces, np.array(owner), compared, given, targets)
