"""How much of the results a person reads before the answer: the measure, and our search by it."""

import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from longspan.evaluate.figures import Row, row
from longspan.evaluate.questions import Question, Questions, squeeze
from longspan.progress import progress_bar
from longspan.search.index import Index
from longspan.search.rerank import Reranker
from longspan.search.results import Hit
from longspan.text.documents import Limits

if TYPE_CHECKING:
    from longspan.reader import Reader

LIMITS = (600, 1800, 3600)
"""Characters of results: about one passage, three, six."""
Place = tuple[int, int, int]
"A passage: the number of its document, and where it starts and ends, in characters."
MODES = ("hybrid", "dense", "bm25")


class Ranking(NamedTuple):
    """What a method answers to a question, best first."""

    places: Sequence[Place]
    answered: bool = True
    "False: it says that there is no good match."
    hits: Sequence[Hit] = ()


class Outcome(NamedTuple):
    """A question, what was found, and where the answer stands in that."""

    question: Question
    ranking: Ranking
    reach: int | None
    "Characters of results up to the end of the first answer; None if more than the last limit."
    rank: int | None
    "Of the passage in which it ends, from 1."

    @property
    def document_first(self) -> bool:
        """Whether the first passage is of the right document."""
        places = self.ranking.places
        return bool(places) and places[0][0] == self.question.document


def judge(question: Question, ranking: Ranking, texts: Sequence[str]) -> Outcome:
    """Read the passages in order, each with white space squeezed, until one of the right document answers.

    Passages that follow each other in the results and, with nothing but white space between, in the document
    are read as one, so an answer may run from one into the next.
    """
    before, first = 0, 0
    while first < len(ranking.places) and before < LIMITS[-1]:
        number, start, end = ranking.places[first]
        ends = [end]
        for other, next_start, next_end in ranking.places[first + 1 :]:
            if other != number or next_start < ends[-1] or texts[number][ends[-1] : next_start].strip():
                break
            ends.append(next_end)
        reading = squeeze(texts[number][start : ends[-1]])
        if number == question.document:
            matches = [reading.find(answer) + len(answer) for answer in question.answers if answer in reading]
            if matches and before + min(matches) <= LIMITS[-1]:
                lengths = [len(squeeze(texts[number][start:end])) for end in ends]
                rank = first + bisect_left(lengths, min(matches)) + 1
                return Outcome(question, ranking, before + min(matches), rank)
        before, first = before + len(reading), first + len(ends)
    return Outcome(question, ranking, None, None)


def measured(
    method: str, questions: Questions, search: Callable[[str], Ranking], began: float | None = None
) -> tuple[Row, list[Outcome]]:
    """The row of a method, and what became of each question; `began` is when its preparations did."""
    began, outcomes = began or time.perf_counter(), []
    with progress_bar(len(questions.questions), "questions") as bar:
        for question in questions.questions:
            outcomes.append(judge(question, search(question.text), questions.texts))
            bar.update(1)
    return summary(questions.name, method, outcomes, time.perf_counter() - began), outcomes


def summary(collection: str, method: str, outcomes: Sequence[Outcome], seconds: float = 0.0) -> Row:
    """The shares of the questions; those of "no good match" only if the method ever says so."""
    answerable = [outcome for outcome in outcomes if outcome.question.document is not None]
    values = {
        f"first {limit}": [outcome.reach is not None and outcome.reach <= limit for outcome in answerable]
        for limit in LIMITS
    }
    values["document first"] = [outcome.document_first for outcome in answerable]
    if any(outcome.ranking.hits for outcome in outcomes):
        without = [outcome for outcome in outcomes if outcome.question.document is None]
        values["no match, rightly"] = [not outcome.ranking.answered for outcome in without]
        values["no match, wrongly"] = [not outcome.ranking.answered for outcome in answerable]
    return row(collection, method, values, seconds)


def by_index(
    questions: Questions,
    model: "str | Path | Reader | None",
    folder: str | Path | None = None,
    modes: Sequence[str] = MODES,
    rerank: Reranker | None = None,
    limits: Limits | None = None,
) -> Iterator[tuple[Row, list[Outcome]]]:
    """Our search by each mode, then the first one with a re-ranker; the index is kept in `folder`, if any."""
    with (
        tempfile.TemporaryDirectory() as temporary,
        Index.open(folder or Path(temporary) / "index", model) as index,
    ):
        began: float | None = time.perf_counter()
        index.add(questions.roots, limits=limits)
        for mode in modes:
            yield measured(mode, questions, partial(_search, index, questions, mode), began)
            began = None
        if rerank is not None and modes:
            search = partial(_search, index, questions, modes[0], rerank=rerank)
            yield measured(f"{modes[0]}, re-ranked", questions, search)


def _search(
    index: Index, questions: Questions, mode: str, text: str, rerank: Reranker | None = None
) -> Ranking:
    """As many hits as have the characters of the last limit."""
    top = 10
    while True:
        hits = index.search(text, top, mode=mode, inside=questions.roots, rerank=rerank)
        known = [hit for hit in hits if hit.file in questions.files]
        if len(hits) < top or sum(len(squeeze(hit.text)) for hit in known) >= LIMITS[-1]:
            places = [(questions.files[hit.file], hit.start, hit.end) for hit in known]
            return Ranking(places, hits.answered, known)
        top *= 2
