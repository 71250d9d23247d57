"""Late chunking: a document is read whole, and its passages are means of the tokens it was read as."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from longspan.models.task import TaskModel
from longspan.nn.heads import pool
from longspan.shapes import FloatArray, IntArray
from longspan.tasks.documents import Document, Reading, prepared
from longspan.tasks.encode import merged, normalised, pooling_of
from longspan.tasks.run import by_document, hidden, run
from longspan.tasks.table import TASKS
from longspan.text.packing import Batch

if TYPE_CHECKING:
    from longspan.reader import Reader

LEAST, USUAL, MOST = 64, 128, 192
"""Tokens of a passage; only a whole document may have fewer."""
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*|\n(?=#{1,6} )|\f")
_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n")


class Passage(NamedTuple):
    """Tokens `first` to `behind` of a document, which are the characters `start` to `end` of its text."""

    first: int
    behind: int
    start: int
    end: int


class Encoded(NamedTuple):
    """A document as vectors of length 1."""

    passages: list[Passage]
    vectors: FloatArray
    "(1 + P, C) float32: the document, then its passages."
    reading: Reading


def split(text: str, offsets: IntArray) -> list[Passage]:
    """Passages of tokens that lie at `offsets` (n, 2) of a text, cut at the best border in reach.

    >>> text = "One two three. " * 40
    >>> spans = np.array([found.span() for found in re.finditer(r"[A-Za-z]+|[.]", text)])
    >>> [text[p.start : p.end][-4:] for p in split(text, spans)]
    ['ree.']
    >>> [p.behind - p.first for p in split(text * 2, np.vstack([spans, spans + len(text)]))]
    [128, 192]
    """
    n = len(offsets) if text.strip() else 0  # byte-level tokenizers make tokens of white space, too
    worth = _borders(text, offsets)
    cuts = [0]
    while n - cuts[-1] > MOST:
        low, high = cuts[-1] + LEAST, min(cuts[-1] + MOST, n - LEAST)
        places = np.arange(low, high + 1)
        near = np.abs(places - cuts[-1] - USUAL) / (4 * MOST)  # below 1: a better border always wins
        cuts.append(int(places[np.argmax(worth[low : high + 1] - near)]))
    cuts = [*cuts, n] if n else []
    return [Passage(a, b, int(offsets[a, 0]), int(offsets[a:b, 1].max())) for a, b in pairwise(cuts)]


def _borders(text: str, offsets: IntArray) -> FloatArray:
    """How good it is to cut before each token: 3 between paragraphs, 2 sentences, 1 words, 0 inside one."""
    starts, ends = offsets[:, 0], offsets[:, 1]
    worth = np.zeros(len(offsets) + 1, np.float32)
    worth[1:-1] = starts[1:] > ends[:-1]
    for value, border in ((2, _SENTENCE), (3, _PARAGRAPH)):
        places = np.array([found.end() for found in border.finditer(text)], np.int64)
        worth[np.searchsorted(starts, places)] = value
    return worth


def encode(
    reader: "Reader", texts: Sequence[str], *, advance: Callable[[int], object] | None = None
) -> list[Encoded]:
    """Texts read whole, with vectors of passages and documents; `advance` is told of tokens as they are read.

    Only sums leave the batch, never the tokens' own vectors. A document beyond the position table is read
    in overlapping windows, and every token is taken from the window where it stands most centrally.
    """
    prompts = reader.prompts
    before = next((prompts[kind] for kind in ("document", "passage", "corpus") if kind in prompts), "")
    how, _ = pooling_of(reader.model, None, None)
    options = reader.options.but(progress=False)
    encodings = reader.tokenizer.encode_many([before + text for text in texts])
    names = [f"texts[{i}]" for i in range(len(texts))]
    documents = prepared(reader.model, TASKS["encode"], names, encodings, options)
    bodies = [_body(document, len(before)) for document in documents]
    found = [split(text, offsets) for text, (_, offsets) in zip(texts, bodies, strict=True)]
    owners = [
        _owner(document, rows, spans)
        for document, (rows, _), spans in zip(documents, bodies, found, strict=True)
    ]
    sizes = [len(spans) for spans in found]
    pieces = [
        (torch.from_numpy(np.where(piece.owned, owner[piece.rows], size)), size)
        for document, owner, size in zip(documents, owners, sizes, strict=True)
        for piece in document.pieces
    ]

    def step(model: TaskModel, batch: Batch) -> Sequence[Tensor]:
        x = hidden(model, batch)
        whole = pool(x, batch.layout, how).split(1)
        sums = [_sums(part, *pieces[i]) for part, i in zip(by_document(x, batch), batch.index, strict=True)]
        if advance is not None:
            advance(batch.layout.size)
        return [torch.cat((one.float(), many)) for one, many in zip(whole, sums, strict=True)]

    results = run(reader.model, documents, options, step)
    return [
        Encoded(spans, _vectors(document, result, how), document.reading)
        for document, spans, result in zip(documents, found, results, strict=True)
    ]


def _body(document: Document, before: int) -> tuple[IntArray, IntArray]:
    """The tokens of the text itself that are read, and their offsets in it."""
    encoding = document.encoding
    read = np.zeros(len(encoding), bool)
    for piece in document.pieces:
        read[piece.rows] = True
    rows = np.flatnonzero(read & (encoding.source == 0) & (encoding.offsets[:, 0] >= before))
    return rows, encoding.offsets[rows] - before


def _owner(document: Document, rows: IntArray, spans: Sequence[Passage]) -> IntArray:
    """For each token of the document the number of its passage, len(spans) for none."""
    owner = np.full(len(document.encoding), len(spans), np.int64)
    for number, span in enumerate(spans):
        owner[rows[span.first : span.behind]] = number
    return owner


def _sums(x: Tensor, owner: Tensor, count: int) -> Tensor:
    """(n, C) to (count, C): the sum of each passage's tokens, those of none left out."""
    sums = torch.zeros(count + 1, x.shape[1], device=x.device)
    return sums.index_add_(0, owner.to(x.device), x.float())[:count]


def _vectors(document: Document, found: Sequence[FloatArray], how: str) -> FloatArray:
    """The document's vector and the passages', whose means have the direction of their sums."""
    whole = merged(document, [piece[0] for piece in found], how)
    sums: FloatArray = np.sum([piece[1:] for piece in found], axis=0)
    return normalised(np.vstack([whole[None], sums])).astype(np.float32)
