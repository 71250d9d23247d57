"""Documents through a model: packed by a token budget, results in the order of the documents."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from longspan.models.bigbird import BigBirdConfig
from longspan.models.etc import EtcConfig
from longspan.models.task import TaskModel, evaluating
from longspan.shapes import FloatArray, IntArray
from longspan.tasks.documents import Document
from longspan.tasks.options import Options
from longspan.tasks.outline import outline_tags
from longspan.text.packing import Batch, pack

Step = Callable[[TaskModel, Batch], Sequence[Tensor]]
"""What is wanted of a batch, as one tensor for each of its documents."""

PATIENCE = 2.0
"""Seconds before a bar is shown."""
log = logging.getLogger("longspan")


def run(
    model: TaskModel, documents: Sequence[Document], options: Options, step: Step
) -> list[list[FloatArray]]:
    """What `step` makes of each piece of each document, in float32."""
    batches = batched(model, documents, options)
    found: dict[int, FloatArray] = {}
    with evaluating(model), torch.no_grad(), _bar(batches, options.progress) as advance:
        for batch in batches:
            results = step(model, on(batch, model))
            for index, result in zip(batch.index, results, strict=True):
                found[index] = result.float().cpu().numpy()
            advance(batch.layout.size)
    ordered = iter(range(len(found)))
    return [[found[next(ordered)] for _ in document.pieces] for document in documents]


def batched(
    model: TaskModel, documents: Sequence[Document], options: Options, *, more: int = 0
) -> list[Batch]:
    """The pieces of the documents, numbered one after the other, packed; what is cut of them is told.

    Each takes `more` tokens of the budget beside its own.
    """
    _say_what_is_cut(documents)
    pieces = [(document, piece) for document in documents for piece in document.pieces]
    if not pieces:
        return []
    return pack(
        [document.encoding.ids[piece.rows] for document, piece in pieces],
        budget=1 if options.deterministic else options.budget,  # of one token: every piece goes alone
        marked=[np.flatnonzero(document.marked[piece.rows]) for document, piece in pieces],
        types=_types(model, documents),
        tags=outline_tags(model.config, options.structure, pieces),
        more=more,
    )


def on(batch: Batch, model: TaskModel) -> Batch:
    """The batch on the device of the model."""
    device = next(model.parameters()).device
    types = None if batch.types is None else batch.types.to(device)
    return Batch(batch.ids.to(device), batch.layout, types, batch.index)


def by_document(rows: Tensor, batch: Batch) -> tuple[Tensor, ...]:
    """(N, ...) as one tensor for each document."""
    parts: tuple[Tensor, ...] = rows.split(batch.layout.lengths.tolist())
    return parts


def hidden(model: TaskModel, batch: Batch) -> Tensor:
    """(N, C): what the model makes of each token, before any head."""
    states: Tensor = model.body(batch.ids, batch.layout, batch.types)
    return states


def scores(model: TaskModel, batch: Batch) -> Tensor:
    """What the head makes of the batch."""
    found: Tensor = model(batch.ids, batch.layout, batch.types)
    return found


def uses_types(model: TaskModel) -> bool:
    """Whether the model is given token types.

    BigBird's tokenizer has none, only its answers tell parts; ETC's types are not BERT's unless it was one.
    """
    config = model.config
    if isinstance(config, EtcConfig) and config.long_type != 0:
        return False
    bigbird = isinstance(config, BigBirdConfig) and not config.bert_heads
    return config.types > 1 and (model.task == "answer" or not bigbird)


def _types(model: TaskModel, documents: Sequence[Document]) -> list[IntArray] | None:
    if not uses_types(model):
        return None
    return [document.encoding.types[piece.rows] for document in documents for piece in document.pieces]


@contextmanager
def _bar(batches: Sequence[Batch], shown: bool | None) -> Iterator[Callable[[int], object]]:
    """A bar that counts tokens; its update function."""
    if shown is False or (shown is None and len(batches) == 1):
        yield lambda tokens: None
        return
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    total = sum(batch.layout.size for batch in batches)
    hide, delay = (False, 0.0) if shown else (None, PATIENCE)  # None: where there is no terminal
    with tqdm(total=total, unit="tokens", unit_scale=True, disable=hide, delay=delay) as bar:
        yield bar.update


def _say_what_is_cut(documents: Sequence[Document]) -> None:
    cut = [document for document in documents if document.reading.truncated]
    if cut:
        lost = sum(document.reading.truncated for document in cut)
        total = sum(len(document.encoding) for document in documents)
        message = "%d of %d documents were cut: %d of %d tokens were not read."
        log.warning(message, len(cut), len(documents), lost, total)
