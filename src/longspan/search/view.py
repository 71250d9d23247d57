"""An index at one moment: its rows, which of them may answer, and the hits."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from longspan.errors import bad, whole
from longspan.search import fusion, meaning, rank
from longspan.search.answer import answering_sentence
from longspan.search.lexical import Shape, lexical
from longspan.search.query import Query, exactly, holds
from longspan.search.records import File, Row, numbers
from longspan.search.results import Hit, Hits
from longspan.search.section import section_at
from longspan.search.store import Store
from longspan.search.terms import query_terms, term_of
from longspan.search.update import within
from longspan.search.where import Where, is_table
from longspan.search.words import stems, words_of
from longspan.shapes import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from longspan.search.ways import QueryVectors

TEXTS = 2000
"""How many passages are looked through at once."""
MODES = ("hybrid", "dense", "bm25")
BY = ("passage", "document")


def check_options(query: object, top: object, mode: object, by: object) -> None:
    """Raise an InputError for options that a search cannot have."""
    if not isinstance(query, str) or not query.strip():
        raise bad("query", "a text that is not empty", query)
    if mode not in MODES:
        raise bad("mode", f"one of {', '.join(MODES)}", mode)
    if by not in BY:
        raise bad("by", f"one of {', '.join(BY)}", by)
    whole("top", top, 1)


class View:
    """Rows of an index, and which passages of which documents they are; a passage is known by its row."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.files, self.entries = store.files(), store.entries()
        self.vectors, self.tokens = store.vectors(), store.tokens()
        rows = store.db.number("rows")
        self.owner, lengths = np.full(rows, -1, np.int64), np.zeros(rows, np.int64)
        self.read = np.zeros(rows, bool)
        "(rows,): which have vectors."
        for number, entry in enumerate(self.entries):
            own = slice(entry.slot, entry.slot + entry.passages + 1)
            self.owner[own] = number
            lengths[own][1:] = numbers(entry.lengths)
            self.read[own] = entry.is_read
        if self.read[len(self.vectors) :].any() or (self.owner[lengths > 0] < 0).any():
            raise ValueError("rows are missing")
        self.slots = np.array([entry.slot for entry in self.entries], np.int64)
        n_passages = np.array([entry.passages for entry in self.entries], np.int64)
        words = np.bincount(self.owner[lengths > 0], lengths[lengths > 0], minlength=len(self.entries))
        self._shape = Shape(self.owner, lengths, n_passages, words.astype(np.float64))

    def __len__(self) -> int:
        return int(self._shape.n_passages.sum())

    @property
    def n_read(self) -> int:
        """How many documents the model has read."""
        return sum(entry.is_read for entry in self.entries)

    @property
    def share_read(self) -> float:
        """How much of the text the model has read, from 0 to 1."""
        sizes = [(entry.characters, entry.n_tokens is not None) for entry in self.entries]
        return sum(size for size, read in sizes if read) / max(1, sum(size for size, _ in sizes))

    @cached_property
    def _files_of(self) -> dict[int, list[File]]:
        """The files of each document, by its id."""
        files: dict[int, list[File]] = {}
        for file in self.files:
            files.setdefault(file.document, []).append(file)
        return files

    @cached_property
    def _number(self) -> dict[int, int]:
        return {entry.id: number for number, entry in enumerate(self.entries)}

    @cached_property
    def token_spans(self) -> tuple[IntArray, IntArray]:
        """Where the tokens of each row begin and end."""
        starts, ends = np.zeros((2, len(self.owner)), np.int64)
        for entry in self.entries:
            if entry.token_ends:
                behind = entry.token_slot + numbers(entry.token_ends)
                own = slice(entry.slot + 1, entry.slot + 1 + entry.passages)
                starts[own], ends[own] = np.concatenate(([entry.token_slot], behind[:-1])), behind
        if (starts > ends).any() or (ends > len(self.tokens)).any():  # a wrong count would fill the memory
            raise ValueError("tokens are missing")
        return starts, ends

    def search(
        self,
        query: Query,
        vectors: "QueryVectors | None",
        top: int,
        *,
        mode: str,
        by: str,
        roots: Sequence[Path] | None,
    ) -> Hits:
        """The best hits for a query."""
        allowed = self._allowed(query, roots)
        signals = self.signals(query.text, vectors, allowed)
        ranking = (rank.passages if by == "passage" else rank.documents)(self, signals, allowed, top, mode)
        hits = [self._hit(row, score, signals, query, roots) for row, score in ranking.scores.items()]
        return Hits(query.text, hits, answered=ranking.confidence >= fusion.ANSWERED)

    def signals(
        self, text: str, vectors: "QueryVectors | None", allowed: BoolArray | None = None
    ) -> rank.Signals:
        """What is known of a query to the passages that may answer, or to all."""
        terms = query_terms(text, self._store.known)
        said = lexical(terms, self._store.postings, self._adjacent, self._named, self._shape)
        known = rank.Signals(text, terms, said, vectors, term_of(terms, vectors.offsets if vectors else ()))
        if vectors is None:
            return known
        if not vectors.own or not len(self.tokens):
            return known._replace(near=meaning.cosines(self, vectors.vector))
        rows = np.flatnonzero(self._shape.lengths > 0 if allowed is None else allowed)
        own = meaning.own_scores(self, vectors, rows)
        return known._replace(near=own.near, own=own)

    def _hit(
        self, row: int, score: float, signals: rank.Signals, query: Query, roots: Sequence[Path] | None
    ) -> Hit:
        """The passage of a row, its scores, and the sentence in it that answers best."""
        entry = self.entries[self.owner[row]]
        passage, *behind = self.texts(np.arange(row, min(row + 2, entry.rows[-1] + 1))).values()
        files = self._files_of[entry.id]
        path = next(file.path for file in files if _is_searched(file, entry.kind, query, roots))
        text = passage.text.strip()
        start = passage.start + len(passage.text) - len(passage.text.lstrip())
        tokens = self._tokens(row, passage.text, start - passage.start, signals)
        begin, end = answering_sentence(
            text, signals, int(self.owner[row]), tokens, passage.path, rows=is_table(path, entry.kind)
        )
        where = Where(entry, passage)
        return Hit(
            file=path,
            same=tuple(file.path for file in files if file.path != path),
            title=entry.title,
            section=section_at(begin, text, passage.path, [(other.text, other.path) for other in behind]),
            page=where.page(start),
            line=where.line(start),
            start=start,
            end=start + len(text),
            answer_start=start + begin,
            answer_end=start + end,
            answer_page=where.page(start + begin),
            answer_line=where.line(start + begin),
            where=where.label(start + begin),
            score=score,
            dense=self._dense(row, signals),
            bm25=float(signals.said.bm25[row]) or None,
            text=text,
        )

    def _dense(self, row: int, query: rank.Signals) -> float | None:
        """The cosine of a passage, or the score of a model that compares tokens; None if there is none."""
        if query.own is not None:
            score = float(query.own.scores[row])
            return None if np.isnan(score) else score
        if query.vectors is None or not self.read[row]:
            return None
        return float(self.vectors[row].astype(np.float32) @ query.vectors.vector)

    def _tokens(
        self, row: int, text: str, lead: int, query: rank.Signals
    ) -> tuple[IntArray, FloatArray] | None:
        """The places of a passage's tokens behind its `lead`, and their products with the query's tokens."""
        if query.vectors is None or not len(self.tokens):
            return None
        start, end = (int(places[row]) for places in self.token_spans)
        encoding = query.vectors.tokenizer.encode(text)
        kept = (encoding.source == 0) & ~np.isin(encoding.ids, query.vectors.skipped)
        places = encoding.offsets[kept][:, 0]
        if not len(places) or len(places) != end - start:  # a tokenizer that sees more than the passage
            return None
        return places - lead, meaning.token_products(self, query.vectors, np.arange(start, end))[0]

    def _named(self, stem: str) -> IntArray:
        """The documents in files whose name holds a stem."""
        found = self._store.named(stem)
        return np.array([self._number[each] for each in found if each in self._number], np.int64)

    def _allowed(self, query: Query, roots: Sequence[Path] | None) -> BoolArray:
        """(rows,): the passages that may answer, by their files and by the phrases that they hold."""
        allowed = self._shape.lengths > 0
        if roots is not None or query.filtered:
            kinds = {entry.id: entry.kind for entry in self.entries}
            fitting = [
                self._number[file.document]
                for file in self.files
                if _is_searched(file, kinds[file.document], query, roots)
            ]
            chosen = np.zeros(len(self.entries), bool)
            chosen[fitting] = True
            allowed &= chosen[self.owner]
        for phrases, wanted in ((query.phrases, True), (query.without, False)):
            for phrase in phrases:
                holding = self._holding(phrase, allowed)
                allowed = holding if wanted else allowed & ~holding
        return allowed

    def _holding(self, phrase: Sequence[str], allowed: BoolArray) -> BoolArray:
        """The allowed passages in which the words of a phrase stand side by side."""
        rows = np.flatnonzero(allowed)
        for stem in stems(phrase).values():
            rows = np.intersect1d(rows, self._store.postings(stem).rows)
        holding = np.zeros(len(allowed), bool)
        search = exactly(phrase)
        for begin in range(0, len(rows), TEXTS):
            texts = self.texts(rows[begin : begin + TEXTS])
            holding[[row for row, passage in texts.items() if search(passage.text)]] = True
        return holding

    def _adjacent(self, pair: tuple[str, str]) -> IntArray:
        """The passages in which two stems stand side by side."""
        first, second = (self._store.postings(stem).rows for stem in pair)
        rows = np.intersect1d(first, second)
        rows = rows[self._shape.lengths[rows] > 0]
        found = []
        for begin in range(0, len(rows), TEXTS):
            for row, passage in self.texts(rows[begin : begin + TEXTS]).items():
                words = words_of(passage.text)
                stem_of = stems(words)
                if holds([stem_of[word] for word in words], pair):
                    found.append(row)
        return np.array(found, np.int64)

    def texts(self, rows: IntArray) -> dict[int, Row]:
        """The passages of rows, in their order."""
        numbers_of = {}
        for row in rows.tolist():
            entry = self.entries[self.owner[row]]
            numbers_of[row] = entry.first + row - entry.slot - 1
        found = self._store.rows(list(numbers_of.values()))
        return {row: found[number] for row, number in numbers_of.items()}


def _is_searched(file: File, kind: str, query: Query, roots: Sequence[Path] | None) -> bool:
    """Whether a file is among those that a query asks for."""
    return (roots is None or within(file.path, roots)) and query.admits(file.path, kind, file.mtime)
