"""Documents through a model: packed by a token budget, results in the order of the documents."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor

from longspan.errors import bad
from longspan.families.task_model import TaskModel, evaluating
from longspan.pipeline.documents import Document, ReadingRules, prepare
from longspan.pipeline.inputs import Inputs
from longspan.pipeline.options import Options
from longspan.pipeline.packing import Batch, pack
from longspan.progress import progress_bar
from longspan.shapes import FloatArray
from longspan.structure.tags import Columns, Stretch, tags_of
from longspan.text.encoding import Encoding
from longspan.text.tokenizer import Tokenizer

T = TypeVar("T")

Step = Callable[[TaskModel, Batch], Sequence[Tensor]]
"""What is wanted of a batch, as one tensor for each of its documents."""

log = logging.getLogger("longspan")


@dataclass(frozen=True)
class Pipeline:
    """A model with its tokenizer, and how documents are read."""

    model: TaskModel
    tokenizer: Tokenizer
    options: Options

    def read(
        self,
        rules: ReadingRules,
        inputs: Inputs,
        step: Step,
        changes: Mapping[str, object],
        encodings: Sequence[Encoding] | None = None,
    ) -> Iterator[tuple[Document, list[FloatArray]]]:
        """Each document, and what `step` makes of its pieces; `changes` are options for this call."""
        options = self.options.but(**changes)
        encodings = self.tokenizer.encode_many(inputs.items) if encodings is None else encodings
        documents = prepare(self.model, rules, inputs.names, encodings, options)
        return zip(documents, run(self.model, documents, options, step), strict=True)


class Results(NamedTuple, Generic[T]):
    """One result for each input."""

    items: list[T]
    single: bool
    "One input was given, not a list of one."

    def unwrap(self) -> T | list[T]:
        """The result of a single input, or all of them."""
        return self.items[0] if self.single else self.items


def run(
    model: TaskModel,
    documents: Sequence[Document],
    options: Options,
    step: Step,
    *,
    tags: Sequence[Columns] | None = None,
) -> list[list[FloatArray]]:
    """What `step` makes of each piece of each document, in float32; `tags` are those of `batched`."""
    say_what_is_cut(documents)
    batches = batched(model, documents, options, tags=tags)
    outputs: dict[int, FloatArray] = {}
    total = sum(batch.layout.size for batch in batches)
    shown = False if options.progress is None and len(batches) == 1 else options.progress
    with evaluating(model), torch.no_grad(), progress_bar(total, "tokens", shown=shown, scale=True) as bar:
        for batch in batches:
            for index, output in zip(batch.index, step(model, on(batch, model)), strict=True):
                outputs[index] = output.float().cpu().numpy()
            bar.update(batch.layout.size)
    ordered = iter(range(len(outputs)))
    return [[outputs[next(ordered)] for _ in document.pieces] for document in documents]


def batched(
    model: TaskModel,
    documents: Sequence[Document],
    options: Options,
    *,
    more: int | Sequence[int] = 0,
    together: Sequence[int] | None = None,
    tags: Sequence[Columns] | None = None,
) -> list[Batch]:
    """The pieces of the documents, numbered one after the other, packed.

    Each takes `more` tokens of the budget beside its own; those with one number in `together` share a batch.
    `tags` are columns of the layout for each piece, beside those of its structure.
    """
    pieces = [(document, piece) for document in documents for piece in document.pieces]
    if not pieces:
        return []
    typed = model.config.reads_token_types(model.architecture)
    units = structure_tags(model, options.structure, documents)
    if units is not None and tags is not None:
        tags = [{**own, **other} for own, other in zip(units, tags, strict=True)]
    return pack(
        [document.encoding.ids[piece.rows] for document, piece in pieces],
        budget=1 if options.deterministic else options.budget,  # of one token: every piece goes alone
        marked=[np.flatnonzero(document.marked[piece.rows]) for document, piece in pieces],
        token_types=[document.encoding.types[piece.rows] for document, piece in pieces] if typed else None,
        tags=units if tags is None else tags,
        more=more,
        together=together,
    )


def on(batch: Batch, model: TaskModel) -> Batch:
    """The batch on the device of the model."""
    return batch.to(next(model.parameters()).device)


def by_document(rows: Tensor, batch: Batch) -> tuple[Tensor, ...]:
    """(N, ...) as one tensor for each document."""
    parts: tuple[Tensor, ...] = rows.split(batch.layout.lengths.tolist())
    return parts


def hidden(model: TaskModel, batch: Batch) -> Tensor:
    """(N, C): what the model makes of each token, before any head."""
    states: Tensor = model.backbone(batch.ids, batch.layout, batch.token_types)
    return states


def head_output(model: TaskModel, batch: Batch) -> Tensor:
    """What the head makes of the batch."""
    output: Tensor = model(batch.ids, batch.layout, batch.token_types)
    return output


def structure_tags(
    model: TaskModel, structure: str | None, documents: Sequence[Document]
) -> list[Columns] | None:
    """Tags of the layout for each piece; None where the model has no structure or makes blocks itself."""
    units = model.config.global_units
    if units is None:
        if structure is not None:
            raise bad("structure", "None for a model without a stream of global tokens", structure)
        return None
    kind = units.kind if structure is None else structure
    if units.most == 0 or kind == "blocks":
        return None
    stretches = [Stretch(one.encoding, piece.rows, one.marked) for one in documents for piece in one.pieces]
    return tags_of(kind, units.most, stretches)


def say_what_is_cut(documents: Sequence[Document]) -> None:
    """Warn of tokens that are not read."""
    cut = [document for document in documents if document.reading.truncated]
    if cut:
        lost = sum(document.reading.truncated for document in cut)
        total = sum(len(document.encoding) for document in documents)
        message = "%d of %d documents were cut: %d of %d tokens were not read."
        log.warning(message, len(cut), len(documents), lost, total)
