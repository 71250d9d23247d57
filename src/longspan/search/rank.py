"""Ranking: what words, vectors and tokens say of a query, weighed for passages and for documents."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longspan.search import fusion
from longspan.search.lexical import Lexical
from longspan.search.meaning import Own, by_tokens, by_vectors
from longspan.search.terms import Term
from longspan.shapes import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from longspan.search.view import View
    from longspan.search.ways import QueryVectors

QUICK, BY_COSINE, BY_BM25, BY_DOCUMENT = 250, 120, 100, 120
"""How many passages the quick scores propose to the thorough one: all of them together, and some alone."""
FINEST = 160
"""How many of these are compared token by token."""


class Signals(NamedTuple):
    """What is known of a query."""

    text: str
    terms: Sequence[Term]
    said: Lexical
    vectors: "QueryVectors | None"
    term_of: IntArray
    "(Q,): the word that each token belongs to, -1 for none; empty without vectors."
    near: FloatArray | None = None
    "(rows,): cosines with the query, or what stands for them; None without vectors."
    own: Own | None = None
    "What a model says that was made to compare tokens."


class Ranking(NamedTuple):
    """Rows and their scores, best first."""

    scores: dict[int, float]
    confidence: float
    "How likely one of them answers."


def passages(view: "View", query: Signals, allowed: BoolArray, top: int, mode: str) -> Ranking:
    """The best allowed passages; scores are BM25, or how likely each of them answers."""
    rows = np.flatnonzero(allowed)
    if mode == "bm25":
        rows = rows[query.said.bm25[rows] > 0]
        return Ranking(best(rows, query.said.bm25[rows], top), 1.0)
    rows = rows[view.read[rows]] if mode == "dense" else rows
    if not len(rows) or (query.vectors is None and (mode == "dense" or not query.terms)):
        return Ranking({}, 0.0)
    rows, features = candidates(view, query, rows, mode)
    if not len(rows):
        return Ranking({}, 0.0)
    read = view.read[rows] if query.vectors is not None else np.zeros(len(rows), bool)
    likely, confidence = _likelihood(
        features, read, _kind(query, mode, "tokens" if len(view.tokens) else "vectors")
    )
    return Ranking(best(rows, likely, top), confidence)


def _kind(query: Signals, mode: str, known: str) -> str:
    """The weights of a score by what is known: a model that compares tokens needs nobody's but its own."""
    if mode != "dense":
        return known
    return "own" if query.own is not None else f"dense {known}"


def _likelihood(features: Mapping[str, FloatArray], read: BoolArray, kind: str) -> tuple[FloatArray, float]:
    """How likely each candidate answers, and one of them: words decide between those `read` and others."""
    if read.all():
        return fusion.likelihood(features, kind)
    likely, confidence = fusion.likelihood(features, "words")
    if read.any():
        share = likely[read].sum() / confidence
        within = fusion.likelihood({name: column[read] for name, column in features.items()}, kind)
        likely[read] = share * within[0]
        confidence = share * within[1] + (1 - share) * confidence
    return likely, confidence


def candidates(
    view: "View", query: Signals, rows: IntArray, mode: str = "hybrid"
) -> tuple[IntArray, dict[str, FloatArray]]:
    """The rows that may be the best, and what is known of each."""
    said, owner = query.said, view.owner[rows]
    words, documents = said.inside[rows] / said.total, said.documents[owner] / said.document_total
    quick = 0.6 * words + 0.6 * documents
    proposals = [(said.bm25[rows], BY_BM25), (words + 4 * documents, BY_DOCUMENT)]
    near = query.near
    if near is not None:
        proposals.append((near[rows], BY_COSINE))
        meaning = near[rows] + 0.5 * near[view.slots][owner]
        quick = meaning if mode == "dense" else quick + meaning
        proposals = proposals[2:] if mode == "dense" else proposals
    proposals.append((quick, QUICK))
    chosen = np.unique(np.concatenate([_largest(scores, count) for scores, count in proposals]))
    passages = view.texts(rows[chosen])
    chosen = chosen[[not row.text.isspace() for row in passages.values()]]
    rows, owner = rows[chosen], owner[chosen]
    texts = [passages[row].text.strip() for row in rows.tolist()]
    entries = [view.entries[number] for number in owner.tolist()]
    places = np.array([(row - e.slot - 1) / max(1, e.passages) for row, e in zip(rows, entries, strict=True)])
    features = {
        "inside_bm25": words[chosen],
        "document_bm25": documents[chosen],
        "covered": said.covered[rows] / said.total,
        "covered_inside": said.covered_inside[rows],
        "document_best": said.best[owner] / said.total,
        "document_covered": said.documents_covered[owner] / said.document_total,
        "missing": said.missing[owner],
        "missing_name": said.missing_name[owner],
    }
    features |= fusion.shapes(query.text, texts, places)
    if near is not None:
        features |= {"cosine": near[rows], "document_cosine": near[view.slots][owner]}
        features |= by_vectors(view, query, rows, owner)
        if query.own is not None:
            features = query.own.scaled(features) | {"own": query.own.standard(rows)}
        if len(view.tokens):
            quick = fusion.score(features, _kind(query, mode, "vectors"))
            finest = np.flatnonzero(~view.read[rows])  # words alone speak for these
            read = np.flatnonzero(view.read[rows])
            finest = np.sort(np.append(finest, read[_largest(quick[read], FINEST)]))
            rows, owner = rows[finest], owner[finest]
            features = {name: column[finest] for name, column in features.items()}
            found = by_tokens(view, query, rows, owner)
            features |= found if query.own is None else query.own.scaled(found)
    return rows, features


def documents(view: "View", query: Signals, allowed: BoolArray, top: int, mode: str) -> Ranking:
    """The best documents, each as its best passage; scores are BM25, or how likely each of them answers."""
    said, rows = query.said, np.flatnonzero(allowed)
    scores: FloatArray = (said.documents / said.document_total + said.best / said.total) / 2
    if mode != "bm25" and query.near is not None:
        meaning = _documents_by_meaning(view, query, rows[view.read[rows]])
        scores = meaning if mode == "dense" else scores + fusion.DOCUMENT_MEANING * np.maximum(meaning, 0)
    elif mode == "dense":
        scores = np.full(len(scores), -1.0)
    present = np.unique(view.owner[rows])
    fitting = present[scores[present] > (-1 if mode == "dense" else 0)]
    ranked = best(fitting, scores[fitting], top)
    near = rows[np.isin(view.owner[rows], list(ranked))]
    inside = np.zeros(len(allowed), bool)
    inside[near] = True
    shown: dict[int, int] = {}
    ranking = passages(view, query, inside, len(near), mode) if len(near) else Ranking({}, 0.0)
    for row in ranking.scores:
        shown.setdefault(int(view.owner[row]), row)
    for number in ranked:  # documents none of whose passages is a candidate
        own = near[view.owner[near] == number]
        shown.setdefault(number, int(own[np.argmax(said.bm25[own])]))
    if mode != "bm25" and ranked:
        scores = np.exp(fusion.SHARPNESS[mode] * (scores - scores[fitting].max()))
        scores *= ranking.confidence / scores[fitting].sum()
    return Ranking({shown[number]: float(scores[number]) for number in ranked}, ranking.confidence)


def _documents_by_meaning(view: "View", query: Signals, rows: IntArray) -> FloatArray:
    """(D,): the scores of documents by their vectors and those of their passages; -1 for those not read."""
    assert query.near is not None
    scores = np.full(len(view.entries), -1.0)
    if len(rows):
        numbers, begins = np.unique(view.owner[rows], return_index=True)
        scores[numbers] = document_scores(query.near[view.slots[numbers]], query.near[rows], begins)
    return scores


def document_scores(documents: FloatArray, passages: FloatArray, begins: IntArray) -> FloatArray:
    """The mean of the cosine with a document, with its best passage, and with its three best on average.

    documents: (D,); passages: (P,), those of a document side by side, from its place in `begins` on.

    >>> document_scores(np.array([0.3, 0.6]), np.array([0.9, 0.0, 0.0, 0.3, 0.3]), np.array([0, 3]))
    array([0.5, 0.4])
    """
    sizes = np.diff(np.append(begins, len(passages)))
    order = np.lexsort((-passages, np.repeat(np.arange(len(begins)), sizes)))
    place = np.arange(len(passages)) - np.repeat(begins, sizes)
    counted = np.where(place < 3, passages[order], 0.0)
    three = np.add.reduceat(counted, begins) / np.minimum(sizes, 3)
    scores: FloatArray = (documents + passages[order][begins] + three) / 3
    return scores


# The best of many


def best(rows: IntArray, scores: FloatArray, count: int) -> dict[int, float]:
    """The `count` rows with the largest scores, largest first; of equal scores, the lower row first.

    >>> best(np.array([4, 5, 6]), np.array([1.0, 3.0, 1.0]), 2)
    {5: 3.0, 4: 1.0}
    """
    if count < len(rows):
        among = scores >= np.partition(scores, -count)[-count]
        rows, scores = rows[among], scores[among]
    order = np.lexsort((rows, -scores))[:count]
    return dict(zip(rows[order].tolist(), scores[order].tolist(), strict=True))


def _largest(scores: FloatArray, count: int) -> IntArray:
    """The places of the `count` largest scores, in any order."""
    if count >= len(scores):
        return np.arange(len(scores))
    return np.argpartition(-scores, count)[:count]
