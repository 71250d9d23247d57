"""Late chunking: the model reads a document whole, and a passage is the mean of its tokens."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from longspan.families.task_model import TaskModel
from longspan.nn.heads import pool
from longspan.pipeline.documents import Document, Reading, prepare
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import by_document, hidden, run
from longspan.shapes import FloatArray, IntArray
from longspan.tasks.encode import ENCODE, merged, normalized, pooling_of, weights_of
from longspan.text.passages import Passage, split

if TYPE_CHECKING:
    from longspan.reader import Reader

PARTS = 4
"""Parts of a passage, each with a vector of its own: the answer may be one sentence among others."""


class Encoded(NamedTuple):
    """A document as vectors of length 1."""

    passages: list[Passage]
    vectors: FloatArray
    "(1 + P, C) float32: the document, then its passages."
    parts: FloatArray
    "(P, PARTS, C) float32: the quarters of each passage; zero where it has fewer tokens than parts."
    reading: Reading

    @property
    def table(self) -> FloatArray:
        """(1 + P, 1 + PARTS, C): the vectors with their parts; a document has none."""
        fine = np.zeros((len(self.vectors), PARTS, self.vectors.shape[1]), np.float32)
        fine[1:] = self.parts
        return np.concatenate((self.vectors[:, None], fine), axis=1)


def encode(
    reader: "Reader", texts: Sequence[str], *, advance: Callable[[int], object] | None = None
) -> list[Encoded]:
    """Read texts whole and give vectors to documents and passages; `advance(n)` after each n tokens.

    Only sums leave a batch, never the vectors of tokens. A document longer than the position table is read in
    overlapping windows, and each token is taken from the window in which it is most central.
    """
    prompts = reader.prompts
    before = next((prompts[kind] for kind in ("document", "passage", "corpus") if kind in prompts), "")
    how, _ = pooling_of(reader.model, None, None)
    options = reader.options.but(progress=False)
    encodings = reader.tokenizer.encode_many([before + text for text in texts])
    names = [f"texts[{i}]" for i in range(len(texts))]
    documents = prepare(reader.model, ENCODE, names, encodings, options)
    bodies = [_body(document, len(before)) for document in documents]
    passages = [split(text, offsets) for text, (_, offsets) in zip(texts, bodies, strict=True)]
    owners = [
        _owner(document, rows, spans)
        for document, (rows, _), spans in zip(documents, bodies, passages, strict=True)
    ]
    sizes = [PARTS * len(spans) for spans in passages]
    pieces = [
        (torch.from_numpy(np.where(piece.owned, owner[piece.rows], size)), size)
        for document, owner, size in zip(documents, owners, sizes, strict=True)
        for piece in document.pieces
    ]

    def step(model: TaskModel, batch: Batch) -> Sequence[Tensor]:
        x, weights = hidden(model, batch), weights_of(model, batch, how)
        whole = pool(x, batch.layout, how, weights).split(1)
        x = x if weights is None else x * weights.unsqueeze(1)
        sums = [_sums(part, *pieces[i]) for part, i in zip(by_document(x, batch), batch.index, strict=True)]
        if advance is not None:
            advance(batch.layout.size)
        return [torch.cat((one.float(), many)) for one, many in zip(whole, sums, strict=True)]

    results = run(reader.model, documents, options, step)
    return [
        Encoded(spans, *_vectors(document, result, how), document.reading)
        for document, spans, result in zip(documents, passages, results, strict=True)
    ]


def _body(document: Document, before: int) -> tuple[IntArray, IntArray]:
    """The tokens of the text itself that the model reads, and their offsets in it."""
    encoding = document.encoding
    read = np.zeros(len(encoding), bool)
    for piece in document.pieces:
        read[piece.rows] = True
    rows = np.flatnonzero(read & (encoding.source == 0) & (encoding.offsets[:, 0] >= before))
    return rows, encoding.offsets[rows] - before


def _owner(document: Document, rows: IntArray, spans: Sequence[Passage]) -> IntArray:
    """The part that each token of the document belongs to; PARTS * len(spans) for none."""
    owner = np.full(len(document.encoding), PARTS * len(spans), np.int64)
    for number, span in enumerate(spans):
        size = span.behind - span.first
        owner[rows[span.first : span.behind]] = PARTS * number + np.arange(size) * PARTS // size
    return owner


def _sums(x: Tensor, owner: Tensor, count: int) -> Tensor:
    """(n, C) -> (count, C): the sum of each part's tokens; those of no part are left out."""
    sums = torch.zeros(count + 1, x.shape[1], device=x.device)
    return sums.index_add_(0, owner.to(x.device), x.float())[:count]


def _vectors(document: Document, pieces: Sequence[FloatArray], how: str) -> tuple[FloatArray, FloatArray]:
    """The document's vector and the passages', and those of their parts: means have the direction of sums."""
    whole = merged(document, [piece[0] for piece in pieces], how)
    sums: FloatArray = np.sum([piece[1:] for piece in pieces], axis=0)
    parts = sums.reshape(-1, PARTS, sums.shape[1])  # (P * PARTS, C) -> (P, PARTS, C)
    vectors = normalized(np.vstack([whole[None], parts.sum(1)])).astype(np.float32)
    return vectors, normalized(parts).astype(np.float32)
