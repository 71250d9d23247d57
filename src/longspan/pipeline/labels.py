"""Labels on their way to a loss: users give one for each document, a batch holds those of its pieces."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from longspan.errors import bad, one_of, whole
from longspan.families.task_model import TaskModel
from longspan.pipeline.documents import Document
from longspan.pipeline.inputs import Inputs, listed
from longspan.pipeline.options import Options
from longspan.pipeline.packing import Batch
from longspan.text.tokenizer import Tokenizer


class Labeling(NamedTuple):
    """What a task makes the labels of pieces from."""

    labels: list[Any]
    "As the user gave them, one for each of the inputs."
    inputs: Inputs
    documents: Sequence[Document]
    classes: Sequence[str]
    problem: str | None
    tokenizer: Tokenizer
    model: TaskModel
    options: Options

    def by_piece(self, label: Callable[[Any, Document], Any]) -> list[Any]:
        """The same label for all pieces of a document."""
        pairs = zip(self.labels, self.documents, strict=True)
        return [made for one, document in pairs for made in [label(one, document)] * len(document.pieces)]

    def number(self, label: object) -> int:
        """The number of a class, given by its number or its name."""
        if isinstance(label, str):
            return list(self.classes).index(one_of("labels", label, self.classes))
        return whole("labels", label, 0, most=len(self.classes) - 1)


def checked(labels: Iterable[object] | None, inputs: Inputs) -> list[Any] | None:
    """One label for each input, as a list."""
    if labels is None:
        return None
    many = [labels] if inputs.single else listed("labels", labels, "a list, one for each input")
    if len(many) != len(inputs.items):
        raise bad("labels", f"one for each of the {len(inputs.items)} inputs", f"{len(many)} labels")
    return many


def with_table(batch: Batch, targets: Sequence[Any], given: Labeling) -> Batch:
    """Labels (pieces,) or (pieces, L): whole numbers in int64, others in float32."""
    table = torch.tensor(targets)
    return replace(batch, labels=table if table.dtype == torch.int64 else table.float())


def with_column(batch: Batch, targets: Sequence[Any], given: Labeling) -> Batch:
    """Labels (N,), one for each token, piece by piece."""
    return replace(batch, labels=torch.from_numpy(np.concatenate(targets).astype(np.int64)))
