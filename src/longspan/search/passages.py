"""Late chunking: the model reads a document whole, and a passage is the weighted mean of its tokens."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.families.task_model import TaskModel
from longspan.nn.heads import pool
from longspan.pipeline.documents import Document, Reading, prepare
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import by_document, run
from longspan.search import late_interaction, token_codes
from longspan.search.large import SEGMENT, STEP
from longspan.search.records import Tables
from longspan.search.ways import QueryVectors, Way, by_vectors
from longspan.shapes import ByteArray, FloatArray, IntArray
from longspan.tasks.encode import merged, normalized, projected, projects

if TYPE_CHECKING:
    from longspan.reader import Reader


class Encoded(NamedTuple):
    """A document as vectors of length 1."""

    tables: Tables
    reading: Reading


class _Segment(NamedTuple):
    """Some passages of a document that are read at once."""

    document: int
    text: str
    starts: IntArray
    "(P,): where its passages begin."


WAYS: dict[str, Callable[["Reader"], Way]] = {late_interaction.TASK: late_interaction.by_tokens}
"""Tasks whose models read in a way of their own."""


def way_of(reader: "Reader") -> Way:
    """How a model reads for an index."""
    return WAYS.get(reader.task, by_vectors)(reader)


def encode_query(reader: "Reader", query: str) -> QueryVectors:
    """Read a query: one vector for it, and one for each of its tokens."""
    return way_of(reader).query(query)


def encode(
    reader: "Reader",
    documents: Sequence[Sequence[str]],
    tokens: str = "off",
    *,
    names: Sequence[str] | None = None,
    expect: Callable[[int], object] | None = None,
    advance: Callable[[int], object] | None = None,
) -> list[Encoded]:
    """Read documents whole, given as passages that together are their texts.

    `names` are what errors call them. `expect(n)` is called before n tokens are read, `advance(n)` after.

    A token counts in its passage as much as the model's SIF weights say, times how rare it is among the
    passages of the document: what stands everywhere tells none of them apart. One without a vector does not
    count. Only sums, and `tokens` as bytes, leave a batch. A document longer than the position table is read
    in overlapping windows, and each token is taken from the window in which it is most central.
    """
    names = [f"documents[{i}]" for i in range(len(documents))] if names is None else names
    segments = [each for number, passages in enumerate(documents) for each in _segments(number, passages)]
    read = _read(reader, segments, tokens, names, expect, advance)
    results = []
    for number in range(len(documents)):
        own = [piece for piece, segment in zip(read, segments, strict=True) if segment.document == number]
        results.append(own[0] if len(own) == 1 else _joined(own))
    return results


def _segments(number: int, passages: Sequence[str]) -> list[_Segment]:
    """A document that is too long to be read at once is cut between passages."""
    sizes = np.array([len(passage) for passage in passages], np.int64)
    begins = np.cumsum(sizes) - sizes
    step = STEP if sizes.sum() > SEGMENT else SEGMENT + 1
    cuts = [0, *(np.flatnonzero(np.diff(begins // step)) + 1).tolist(), len(passages)]
    return [
        _Segment(number, "".join(passages[a:b]), begins[a:b] - (begins[a] if b > a else 0))
        for a, b in pairwise(cuts)
    ]


def _read(
    reader: "Reader",
    segments: Sequence[_Segment],
    tokens: str,
    names: Sequence[str],
    expect: Callable[[int], object] | None,
    advance: Callable[[int], object] | None,
) -> list[Encoded]:
    way = way_of(reader)
    options = reader.options.but(progress=False, overflow="window")
    encodings, before = way.documents([segment.text for segment in segments])
    called = [names[segment.document] for segment in segments]
    documents = prepare(reader.model, way.rules, called, encodings, options)
    if expect is not None:
        expect(sum(len(piece.rows) for document in documents for piece in document.pieces))
    owners = [
        _owner(document, before, segment, way.skipped)
        for document, segment in zip(documents, segments, strict=True)
    ]
    rarities = [
        _rarity(document, owner, len(segment.starts))
        for document, owner, segment in zip(documents, owners, segments, strict=True)
    ]
    pieces = []
    for document, owner, rarity, segment in zip(documents, owners, rarities, segments, strict=True):
        none = len(segment.starts)
        for piece in document.pieces:
            own = torch.from_numpy(np.where(piece.owned, owner[piece.rows], none))
            pieces.append((own, torch.from_numpy(rarity[piece.rows]), none))
    kept: dict[int, tuple[IntArray, ByteArray]] = {}

    def step(model: TaskModel, batch: Batch) -> Sequence[Tensor]:
        x, weights = way.rows(model, batch), way.weights(model, batch)
        whole = pool(x, batch.layout, way.pooling, weights).split(1)
        counted = by_document(torch.ones(len(x)) if weights is None else weights.float().cpu(), batch)
        results = []
        for part, weight, i in zip(by_document(x, batch), counted, batch.index, strict=True):
            owner, rarity, none = pieces[i]
            vectors, weight = part.float().cpu(), weight * rarity
            sums = torch.zeros(none + 1, x.shape[1]).index_add_(0, owner, vectors * weight.unsqueeze(1))
            counts = torch.zeros(none + 1, 1).index_add_(0, owner, weight.unsqueeze(1))
            results.append(torch.cat((sums, counts), 1)[:none])
            if tokens != "off":
                mine = owner < none
                codes = token_codes.pack(vectors[mine].numpy(), weight[mine].numpy(), tokens)
                kept[i] = owner[mine].numpy(), codes
        if advance is not None:
            advance(batch.layout.size)
        ones = (F.pad(one.float().cpu(), (0, 1), value=1.0) for one in whole)
        return [torch.cat(both) for both in zip(ones, results, strict=True)]

    outputs = run(reader.model, documents, options, step)
    results, done = [], 0
    for document, segment, output in zip(documents, segments, outputs, strict=True):
        codes = [kept[i] for i in range(done, done + len(document.pieces)) if i in kept]
        done += len(document.pieces)
        tables = _tables(reader.model, document, output, codes, len(segment.starts), way.pooling)
        results.append(Encoded(tables, document.reading))
    return results


def _owner(document: Document, before: int, segment: _Segment, skipped: IntArray) -> IntArray:
    """The passage that each token belongs to; their number for none, and for those that are skipped."""
    encoding = document.encoding
    owner = np.full(len(encoding), len(segment.starts), np.int64)
    read = np.zeros(len(encoding), bool)
    for piece in document.pieces:
        read[piece.rows] = True
    own = (encoding.source == 0) & (encoding.offsets[:, 0] >= before) & ~np.isin(encoding.ids, skipped)
    rows = np.flatnonzero(read & own)
    if len(segment.starts):
        owner[rows] = np.searchsorted(segment.starts, encoding.offsets[rows, 0] - before, side="right") - 1
    return owner


def _rarity(document: Document, passage: IntArray, count: int) -> FloatArray:
    """How rare each token is among the `count` passages of its document, from nearly 0 to 1."""
    inside = passage < count
    pairs = np.unique(np.stack((document.encoding.ids[inside], passage[inside])), axis=1)
    ids, holding = np.unique(pairs[0], return_counts=True)
    rarity = np.ones(len(passage), np.float32)
    if len(ids):
        k = holding[np.searchsorted(ids, document.encoding.ids[inside])]
        rarity[inside] = np.log1p((count - k + 0.5) / (k + 0.5)) / math.log1p((count + 0.5) / 0.5)
    return rarity


def _tables(
    model: TaskModel,
    document: Document,
    pieces: Sequence[FloatArray],
    kept: Sequence[tuple[IntArray, ByteArray]],
    count: int,
    how: str,
) -> Tables:
    """The vectors of a document and its passages, from sums of tokens and, in the last column, of weights.

    Means have the direction of sums, and are not needed unless they are projected.
    """
    whole = merged(document, [piece[0, :-1] for piece in pieces], how)
    sums: FloatArray = np.sum([piece[1:] for piece in pieces], axis=0)
    passages, counts = sums[:, :-1], sums[:, -1:]
    if projects(model):
        passages = np.divide(passages, counts, out=passages.copy(), where=counts > 0)
    vectors = normalized(projected(model, np.vstack([whole[None], passages]))).astype(np.float32)
    if not kept:
        return Tables(vectors, np.zeros((0, 0), np.uint8), np.zeros(count, np.int64))
    passage = np.concatenate([owner for owner, _ in kept])
    order = np.argsort(passage, kind="stable")
    codes = np.concatenate([codes for _, codes in kept])[order]
    return Tables(vectors, codes, np.cumsum(np.bincount(passage, minlength=count)))


def _joined(segments: Sequence[Encoded]) -> Encoded:
    """A document from its segments; its vector is their mean, by their tokens."""
    tables = [segment.tables for segment in segments]
    sizes = [segment.reading.n_tokens for segment in segments]
    whole = np.average([table.vectors[0] for table in tables], axis=0, weights=sizes)
    before = np.cumsum([0, *(len(table.tokens) for table in tables)])
    return Encoded(
        Tables(
            np.vstack([normalized(whole)[None], *(table.vectors[1:] for table in tables)]),
            np.concatenate([table.tokens for table in tables]),
            np.concatenate([table.token_ends + n for table, n in zip(tables, before[:-1], strict=True)]),
        ),
        Reading(*(sum(column) for column in zip(*(each.reading for each in segments), strict=True))),
    )
