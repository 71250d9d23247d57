"""An index as it is at one moment, and what can be found in it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from longspan.search.rank import best, document_scores, passage_scores, products, scan
from longspan.search.results import Hit, damaged
from longspan.search.store import File, Store, slots_of
from longspan.search.update import within
from longspan.search.words import asked_for, bm25
from longspan.shapes import FloatArray, IntArray

NEAR, NEAR_DOCUMENTS = 1000, 50
"""How many passages, the nearest ones, and documents are looked at closely: with the parts of passages."""


class View:
    """Rows of vectors, and which passages of which files they are; a passage is known by its row."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.files, self._vectors, self._fine = store.files(), store.vectors(), store.fine()
        self._begins = np.array([file.slot for file in self.files], np.int64)
        self._rows = slots_of(self.files)
        self._lengths = np.zeros(len(self._vectors), np.int64)
        self._lengths[self._rows] = np.concatenate([[], *(file.words for file in self.files)])

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, roots: Sequence[Path] | None) -> IntArray:
        """The rows of all passages, or of those in some files or folders."""
        if roots is None:
            return self._rows
        return slots_of([file for file in self.files if within(file.path, roots)])

    def both(
        self, query: str, vector: FloatArray | None, count: int, rows: IntArray, *, mode: str, by: str
    ) -> tuple[dict[int, float], dict[int, float]]:
        """The ranking by meaning, if there is a vector, and that by words, as the mode asks for."""
        dense, words = dict[int, float](), dict[int, float]()
        meaning = self.by_meaning if by == "passage" else self.documents_by_meaning
        if vector is not None and len(rows):
            dense = meaning(vector, count, rows)
        if mode != "dense":
            words = (
                self.by_words(query, count, rows)
                if by == "passage"
                else self.documents_by_words(query, count, rows, dense)
            )
        return dense, words

    def by_meaning(self, query: FloatArray, count: int, rows: IntArray) -> dict[int, float]:
        """Rows and their scores, largest first: every one is looked at, the nearest ones closely."""
        near = np.sort(np.fromiter(scan(self._vectors, query, rows, max(NEAR, count)), np.int64))
        return best(near, self._closely(query, near), count)

    def _closely(self, query: FloatArray, rows: IntArray) -> FloatArray:
        """Scores of passages by themselves and by their best parts."""
        scores: FloatArray = passage_scores(query[None], self._vectors[rows], self._fine[rows])[0]
        return scores

    def documents_by_meaning(self, query: FloatArray, count: int, rows: IntArray) -> dict[int, float]:
        """The best passages of the best documents and these documents' scores, largest first."""
        rough, owner = products(self._vectors, query), self._owner(rows)
        closest = np.full(len(self.files), -np.inf, np.float32)
        np.maximum.at(closest, owner, rough[rows])
        order = np.argsort(-document_scores(rough[self._begins], closest))[: max(NEAR_DOCUMENTS, count)]
        found = []
        for number in order[np.isfinite(closest[order])]:
            own = rows[owner == number]
            scores = self._closely(query, own)
            alike = self._vectors[self._begins[number]].astype(np.float32) @ query
            found.append((own[scores.argmax()], document_scores(alike, scores.max())))
        first, total = np.array(found).reshape(-1, 2).T
        return best(first.astype(np.int64), total, count)

    def documents_by_words(
        self, query: str, count: int, rows: IntArray, like: Mapping[int, float]
    ) -> dict[int, float]:
        """The same by BM25; a document is told by the same passage as in `like`, if it is there."""
        told = dict(zip(self._owner(np.fromiter(like, np.int64)).tolist(), like, strict=True))
        found: dict[int, float] = {}
        for row, score in self.by_words(query, len(rows), rows).items():
            number = int(self._owner(np.array([row]))[0])
            if told.setdefault(number, row) not in found and len(found) < count:
                found[told[number]] = score
        return found

    def by_words(self, query: str, count: int, rows: IntArray) -> dict[int, float]:
        """Rows that hold a word of the query and their BM25, largest first."""
        found = [self._store.postings(term) for term in asked_for(query)]
        scores = bm25(found, self._lengths, len(self))
        there = np.flatnonzero(scores)
        there = there if len(rows) == len(self) else there[np.isin(there, rows)]
        return best(there, scores[there], count)

    def hit(self, row: int, score: float, dense: float | None, words: float | None) -> Hit:
        """The passage of a row, with its scores."""
        file = self._file(row)
        number = file.first + row - file.slot - 1
        found = self._store.db.rows("SELECT start, stop, page, line, text FROM passages WHERE id = ?", number)
        if not found:
            raise damaged(self._store.folder, f"a passage of {file.path} is missing")
        start, end, page, line, text = found[0]
        if not isinstance(text, str):
            raise damaged(self._store.folder, f"a passage of {file.path} is not text")
        where = {"file": file.path, "page": page, "line": line, "start": start, "end": end}
        return Hit(**where, score=score, dense=dense, bm25=words, text=text)

    def _owner(self, rows: IntArray) -> IntArray:
        """The numbers of the files that rows belong to."""
        return np.searchsorted(self._begins, rows, side="right") - 1

    def _file(self, row: int) -> File:
        return self.files[int(self._owner(np.array([row]))[0])]
