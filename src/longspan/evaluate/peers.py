"""What people use without us, for the same questions: full-text search and chunks with vectors."""

import hashlib
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np

from longspan.evaluate.answers import Outcome, Place, Ranking, measured
from longspan.evaluate.figures import Row
from longspan.evaluate.questions import Questions
from longspan.search.update import fingerprint
from longspan.search.words import STOP_WORDS, words_of
from longspan.shapes import FloatArray

if TYPE_CHECKING:
    from longspan.reader import Reader

WORDS, CHARACTERS = 90, 500
"""Sizes of the chunks of full-text search and of vectors."""
DEPTH, SMOOTHING = 100, 60
"""Chunks of each ranking that are fused, by the sum of 1 / (SMOOTHING + rank)."""
PEERS = {
    "fts5": f"SQLite FTS5, chunks of {WORDS} words",
    "chunks": f"MiniLM, chunks of {CHARACTERS} characters",
    "chunks+bm25": "... with BM25 and rank fusion",
}


def by_peers(
    questions: Questions,
    short: "Callable[[], Reader]",
    folder: str | Path | None = None,
    methods: Sequence[str] = tuple(PEERS),
) -> Iterator[tuple[Row, list[Outcome]]]:
    """The row of each peer; the short model is loaded if one needs it, vectors are kept beside `folder`."""
    peers = _Peers(questions, short, Path(f"{folder}-chunks.npz") if folder else None)
    searches = {"fts5": peers.by_words, "chunks": peers.by_vectors, "chunks+bm25": peers.by_both}
    for name in methods:
        yield measured(PEERS[name], questions, searches[name])


class _Peers:
    def __init__(self, questions: Questions, short: "Callable[[], Reader]", kept: Path | None) -> None:
        self._texts, self._load, self._kept = questions.texts, short, kept

    @cached_property
    def _words(self) -> "FullText":
        return FullText(self._texts, chunks_of_words(self._texts))

    @cached_property
    def _vectors(self) -> "Vectors":
        return Vectors(self._load(), self._texts, self._words_of_chunks.places, self._kept)

    @cached_property
    def _words_of_chunks(self) -> "FullText":
        return FullText(self._texts, chunks_of_characters(self._texts))

    def by_words(self, question: str) -> Ranking:
        return Ranking([self._words.places[i] for i in self._words.best(question)])

    def by_vectors(self, question: str) -> Ranking:
        return Ranking([self._vectors.places[i] for i in self._vectors.best(question)])

    def by_both(self, question: str) -> Ranking:
        order = fused(self._vectors.best(question), self._words_of_chunks.best(question))
        return Ranking([self._vectors.places[i] for i in order])


class FullText:
    """A table of SQLite's FTS5 with Porter's stems, ranked by its bm25()."""

    def __init__(self, texts: Sequence[str], places: Sequence[Place]) -> None:
        self.places = places
        self._table = sqlite3.connect(":memory:")
        self._table.execute("CREATE VIRTUAL TABLE chunks USING fts5 (text, tokenize = 'porter unicode61')")
        rows = ((i, texts[number][start:end]) for i, (number, start, end) in enumerate(places))
        self._table.executemany("INSERT INTO chunks (rowid, text) VALUES (?, ?)", rows)

    def best(self, question: str) -> list[int]:
        """The best DEPTH chunks that hold any word of the question but stop words."""
        words = words_of(question)
        query = " OR ".join(f'"{word}"' for word in [w for w in words if w not in STOP_WORDS] or words)
        select = "SELECT rowid FROM chunks WHERE chunks MATCH ? ORDER BY bm25(chunks), rowid LIMIT ?"
        return [rowid for (rowid,) in self._table.execute(select, (query, DEPTH))] if query else []


class Vectors:
    """Chunks encoded alone by a short model, ranked by cosine."""

    def __init__(
        self, short: "Reader", texts: Sequence[str], places: Sequence[Place], kept: Path | None = None
    ) -> None:
        self.places, self._short = places, short
        chunks = [texts[number][start:end] for number, start, end in places]
        mark = hashlib.sha256("\0".join([fingerprint(short), *chunks]).encode()).hexdigest()
        stored = _stored(kept, mark)
        if stored is None:
            stored = np.asarray(short.encode(chunks, normalize=True, overflow="truncate"))
            if kept:
                kept.parent.mkdir(parents=True, exist_ok=True)
                np.savez(kept, mark=mark, vectors=stored)
        self._vectors = stored

    def best(self, question: str) -> list[int]:
        """The nearest DEPTH chunks."""
        vector = self._short.encode_query(question, normalize=True, overflow="truncate", progress=False)
        order: list[int] = np.argsort(-(self._vectors @ np.asarray(vector)), kind="stable")[:DEPTH].tolist()
        return order


def _stored(kept: Path | None, mark: str) -> FloatArray | None:
    """The vectors in a file, if it is whole and has this mark."""
    if kept is not None and kept.exists():
        with suppress(OSError, ValueError, KeyError, BadZipFile), np.load(kept, allow_pickle=False) as stored:
            if str(stored["mark"]) == mark:
                vectors: FloatArray = stored["vectors"]
                return vectors
    return None


def fused(*rankings: Sequence[int]) -> list[int]:
    """Reciprocal rank fusion: the sum of 1 / (SMOOTHING + rank), largest first.

    >>> fused([7, 8], [8, 9])
    [8, 7, 9]
    """
    sums: dict[int, float] = {}
    for ranking in rankings:
        for rank, number in enumerate(ranking, 1):
            sums[number] = sums.get(number, 0.0) + 1 / (SMOOTHING + rank)
    return sorted(sums, key=lambda number: -sums[number])


def chunks_of_words(texts: Sequence[str], size: int = WORDS) -> list[Place]:
    """Every `size` words that white space separates."""
    places = []
    for number, text in enumerate(texts):
        words = [match.span() for match in re.finditer(r"\S+", text)]
        parts = [words[i : i + size] for i in range(0, len(words), size)]
        places += [(number, part[0][0], part[-1][1]) for part in parts]
    return places


def chunks_of_characters(texts: Sequence[str], size: int = CHARACTERS) -> list[Place]:
    """As many words as fit into `size` characters; a longer word is a chunk of its own."""
    places: list[Place] = []
    for number, text in enumerate(texts):
        start = end = -1
        for match in re.finditer(r"\S+", text):
            if start >= 0 and match.end() - start > size:
                places.append((number, start, end))
                start = -1
            start, end = match.start() if start < 0 else start, match.end()
        if start >= 0:
            places.append((number, start, end))
    return places
