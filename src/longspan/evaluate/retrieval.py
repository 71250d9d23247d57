"""Retrieval by reading whole documents, compared with truncation, chunks and BM25."""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

from longspan.evaluate.answers import Place
from longspan.evaluate.collections import Collection, Query, Span
from longspan.evaluate.figures import Row, row
from longspan.progress import progress_bar
from longspan.reader import Reader
from longspan.search.index import Index
from longspan.search.passages import encode
from longspan.search.rank import document_scores
from longspan.shapes import FloatArray, IntArray
from longspan.text.passages import tile

CHUNKS = (126, 254, 510)
"""Tokens of independent chunks, without the two special ones."""
DEPTH = 10


def by_document(
    collection: Collection, short: Reader, long: Reader, limit: int, methods: Sequence[str] | None = None
) -> Iterator[Row]:
    """How well each method ranks documents, cut to `limit` tokens: mean reciprocal rank and recall@1."""
    documents = _Documents(collection, short, long, limit)
    scorers: dict[str, Callable[[], FloatArray]] = {"first 510 tokens": documents.first}
    scorers |= {f"mean of chunks of {size}": partial(documents.mean, size) for size in CHUNKS}
    scorers[f"mean and best chunk of {CHUNKS[0]}"] = partial(documents.mean, CHUNKS[0], best=True)
    scorers |= {"whole document": documents.whole, "whole document + best passage": documents.best}
    gold = np.array([query.document for query in collection.queries])
    for name, scorer in scorers.items():
        if methods is None or name in methods:
            began = time.perf_counter()
            scores = scorer()
            ranks = 1 + (scores > scores[np.arange(len(gold)), gold][:, None]).sum(1)
            values = {"MRR": 1 / ranks, "recall@1": ranks == 1}
            yield row(collection.name, name, values, time.perf_counter() - began)


class _Documents:
    """Scores (questions, documents) by each method."""

    def __init__(self, collection: Collection, short: Reader, long: Reader, limit: int) -> None:
        self.short, self.long = short, long
        self.texts = [cut(long, text, limit) for text in collection.documents]
        self.questions = _questions(collection, short)

    def first(self) -> FloatArray:
        cuts = [text[slice(*chunked(self.short, text, 510)[0])] for text in self.texts]
        return self._scores(_alone(self.short, cuts))

    def mean(self, size: int, *, best: bool = False) -> FloatArray:
        chunks = [[text[a:b] for a, b in chunked(self.short, text, size)] for text in self.texts]
        vectors = _alone(self.short, list(chain.from_iterable(chunks)))
        parts = np.split(vectors, np.cumsum([len(own) for own in chunks])[:-1])
        scores = self._scores(np.stack([part.mean(0) for part in parts]))
        if not best:
            return scores
        closest = np.stack([(self.questions @ part.T).max(1) for part in parts], axis=1)
        return np.asarray((scores + closest) / 2)

    def whole(self) -> FloatArray:
        return self._scores(np.stack([vectors[0] for vectors in self._encoded]))

    def best(self) -> FloatArray:
        begins = np.cumsum([0, *(len(vectors) - 1 for vectors in self._encoded[:-1])])
        passages = self.questions @ np.concatenate([vectors[1:] for vectors in self._encoded]).T
        pairs = zip(self.whole(), passages, strict=True)
        return np.stack([document_scores(whole, own, begins) for whole, own in pairs])

    @cached_property
    def _encoded(self) -> list[FloatArray]:
        encoded = []
        with progress_bar(len(self.texts), "documents") as bar:
            for text in self.texts:
                encoded += [each.tables.vectors for each in encode(self.long, [_passages(text)])]
                bar.update(1)
        return encoded

    def _scores(self, vectors: FloatArray) -> FloatArray:
        scores: FloatArray = self.questions @ (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).T
        return scores


def by_passage(
    collection: Collection, short: Reader, long: Reader, methods: Sequence[str] | None = None
) -> Iterator[Row]:
    """How often one of the first k passages answers, all documents in one index: recall@k of each method."""
    sizes: dict[str, int | None] = {"our passages, each alone": None}
    sizes |= {f"chunks of {size}, each alone": size for size in CHUNKS[:2]}
    for name, size in sizes.items():
        if methods is None or name in methods:
            began = time.perf_counter()
            values = _recalls(collection.queries, _ranked_chunks(collection, short, size))
            yield row(collection.name, name, values, time.perf_counter() - began)
    modes = {"whole document": "dense", "BM25": "bm25", "whole document + BM25": "hybrid"}
    chosen = [name for name in modes if methods is None or name in methods]
    if not chosen:
        return
    with tempfile.TemporaryDirectory() as folder:
        began, place = time.perf_counter(), Path(folder) / "documents"
        place.mkdir()
        for number, text in enumerate(collection.documents):
            (place / f"{number:06}.txt").write_text(text, encoding="utf-8", newline="")
        with Index.open(Path(folder) / "index", model=long) as index:
            index.add(place)
            for name in chosen:
                hits = [index.search(query.text, DEPTH, mode=modes[name]) for query in collection.queries]
                places = [[(int(hit.file.stem), hit.start, hit.end) for hit in own] for own in hits]
                values = _recalls(collection.queries, places)
                yield row(collection.name, name, values, time.perf_counter() - began)
                began = time.perf_counter()


def _ranked_chunks(collection: Collection, short: Reader, size: int | None) -> list[list[Place]]:
    """The best chunks of `size` tokens for each question, each encoded alone; None: the index's passages."""
    spans = [_spans(text) if size is None else chunked(short, text, size) for text in collection.documents]
    places = [(number, a, b) for number, own in enumerate(spans) for a, b in own]
    vectors = _alone(short, [collection.documents[number][a:b] for number, a, b in places])
    best = np.argsort(-(_questions(collection, short) @ vectors.T), axis=1)[:, :DEPTH]
    return [[places[i] for i in row] for row in best]


def _questions(collection: Collection, short: Reader) -> FloatArray:
    questions = [query.text for query in collection.queries]
    return np.asarray(short.encode_query(questions, normalize=True, overflow="truncate", progress=False))


def _alone(short: Reader, texts: Sequence[str]) -> FloatArray:
    return np.asarray(short.encode(texts, normalize=True, overflow="truncate"))


def chunked(reader: Reader, text: str, size: int) -> list[Span]:
    """Where chunks of `size` tokens start and end; an empty text is one chunk."""
    offsets = _offsets(reader, text)
    starts = range(0, len(offsets), size)
    return [(int(offsets[a, 0]), int(offsets[a : a + size, 1].max())) for a in starts] or [(0, len(text))]


def cut(reader: Reader, text: str, limit: int) -> str:
    """The start of a text that has at most `limit` tokens, two of which are special."""
    offsets = _offsets(reader, text)
    return text if len(offsets) <= limit - 2 else text[: int(offsets[: limit - 2, 1].max())]


def _passages(text: str) -> list[str]:
    return [text[a:b] for a, b in _spans(text)]


def _spans(text: str) -> list[Span]:
    return list(pairwise((*tile(text), len(text))))


def _offsets(reader: Reader, text: str) -> IntArray:
    encoding = reader.tokenizer.encode(text)
    offsets: IntArray = encoding.offsets[encoding.source == 0]
    return offsets


def _recalls(queries: Sequence[Query], rankings: Sequence[Sequence[Place]]) -> dict[str, FloatArray]:
    """For each question whether one of the first 1, 5, 10 passages answers."""
    ranks = np.array(
        [
            next((rank for rank, place in enumerate(places, 1) if answers(query, place)), DEPTH + 1)
            for query, places in zip(queries, rankings, strict=True)
        ]
    )
    return {f"recall@{k}": (ranks <= k).astype(float) for k in (1, 5, DEPTH)}


def answers(query: Query, place: Place) -> bool:
    """Whether a passage and an answer overlap by at least half of the shorter one.

    >>> (
    ...     answers(Query("who?", 3, ((10, 20),)), (3, 15, 40)),
    ...     answers(Query("who?", 3, ((10, 20),)), (3, 16, 40)),
    ... )
    (True, False)
    """
    number, start, end = place
    if number != query.document:
        return False
    return any(2 * (min(b, end) - max(a, start)) >= min(b - a, end - start) for a, b in query.spans)
