"""An index at one moment: its vectors and postings, ranked for a query."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from longspan.search.database import damaged
from longspan.search.rank import best, document_scores, passage_scores, products, scan
from longspan.search.results import Hit
from longspan.search.store import Store, passage_rows
from longspan.search.update import within
from longspan.search.words import bm25, query_stems
from longspan.shapes import FloatArray, IntArray

NEAR, NEAR_DOCUMENTS = 1000, 50
"""How many of the nearest passages and documents are compared by the parts of passages, too."""


class View:
    """Rows of vectors, and which passages of which files they are; a passage is known by its row."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.files, self._vectors, self._fine = store.files(), store.vectors(), store.fine()
        self._begins = np.array([file.slot for file in self.files], np.int64)
        self._rows = passage_rows(self.files)
        self._lengths = np.zeros(len(self._vectors), np.int64)
        self._lengths[self._rows] = np.concatenate([[], *(file.words for file in self.files)])

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, roots: Sequence[Path] | None) -> IntArray:
        """The rows of all passages, or of those in some files or folders."""
        if roots is None:
            return self._rows
        return passage_rows([file for file in self.files if within(file.path, roots)])

    def rankings(
        self, query: str, vector: FloatArray | None, count: int, rows: IntArray, *, mode: str, by: str
    ) -> tuple[dict[int, float], dict[int, float]]:
        """The ranking by meaning (empty without a vector) and the one by words (empty if mode is dense)."""
        dense, words = dict[int, float](), dict[int, float]()
        by_meaning = self.by_meaning if by == "passage" else self.documents_by_meaning
        if vector is not None and len(rows):
            dense = by_meaning(vector, count, rows)
        if mode != "dense":
            words = (
                self.by_words(query, count, rows)
                if by == "passage"
                else self.documents_by_words(query, count, rows, dense)
            )
        return dense, words

    def by_meaning(self, query: FloatArray, count: int, rows: IntArray) -> dict[int, float]:
        """The best rows and their scores, best first; parts are compared for the nearest only."""
        near = np.sort(np.fromiter(scan(self._vectors, query, rows, max(NEAR, count)), np.int64))
        return best(near, self._scores(query, near), count)

    def _scores(self, query: FloatArray, rows: IntArray) -> FloatArray:
        """The scores of passages, their parts included."""
        scores: FloatArray = passage_scores(query[None], self._vectors[rows], self._fine[rows])[0]
        return scores

    def documents_by_meaning(self, query: FloatArray, count: int, rows: IntArray) -> dict[int, float]:
        """The best passages of the best documents, and the scores of these documents, best first."""
        rough, owner = products(self._vectors, query), self._owner(rows)
        closest = np.full(len(self.files), -np.inf, np.float32)
        np.maximum.at(closest, owner, rough[rows])
        order = np.argsort(-document_scores(rough[self._begins], closest))[: max(NEAR_DOCUMENTS, count)]
        ranked = []
        for number in order[np.isfinite(closest[order])]:
            own = rows[owner == number]
            scores = self._scores(query, own)
            cosine = self._vectors[self._begins[number]].astype(np.float32) @ query
            ranked.append((own[scores.argmax()], document_scores(cosine, scores.max())))
        first, total = np.array(ranked).reshape(-1, 2).T
        return best(first.astype(np.int64), total, count)

    def documents_by_words(
        self, query: str, count: int, rows: IntArray, dense: Mapping[int, float]
    ) -> dict[int, float]:
        """The same by BM25; a document that `dense` ranks is represented by the same passage as there."""
        passage_of = dict(zip(self._owner(np.fromiter(dense, np.int64)).tolist(), dense, strict=True))
        ranking: dict[int, float] = {}
        for row, score in self.by_words(query, len(rows), rows).items():
            number = int(self._owner(np.array([row]))[0])
            if passage_of.setdefault(number, row) not in ranking and len(ranking) < count:
                ranking[passage_of[number]] = score
        return ranking

    def by_words(self, query: str, count: int, rows: IntArray) -> dict[int, float]:
        """The rows that hold a word of the query and their BM25, best first."""
        scores = bm25(map(self._store.postings, query_stems(query)), self._lengths, len(self))
        matching = np.flatnonzero(scores)
        matching = matching if len(rows) == len(self) else matching[np.isin(matching, rows)]
        return best(matching, scores[matching], count)

    def hit(self, row: int, score: float, dense: float | None, words: float | None) -> Hit:
        """The passage of a row, with its scores."""
        file = self.files[int(self._owner(np.array([row]))[0])]
        number = file.first + row - file.slot - 1
        select = "SELECT start, stop, page, line, text FROM passages WHERE id = ?"
        records = self._store.db.rows(select, number)
        if not records:
            raise damaged(self._store.folder, f"a passage of {file.path} is missing")
        passage = dict(zip(("start", "end", "page", "line", "text"), records[0], strict=True))
        if not isinstance(passage["text"], str):
            raise damaged(self._store.folder, f"a passage of {file.path} is not text")
        return Hit(file=file.path, score=score, dense=dense, bm25=words, **passage)

    def _owner(self, rows: IntArray) -> IntArray:
        """The numbers of the files that rows belong to."""
        return np.searchsorted(self._begins, rows, side="right") - 1
