"""What the words of a query say of passages and documents, and how rare each of them is inside of each."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from longspan.search.terms import Term
from longspan.search.words import K1, B, Postings
from longspan.shapes import FloatArray, IntArray


class Shape(NamedTuple):
    """The rows of an index, as far as words are concerned."""

    owner: IntArray
    "(rows,): the document of each row, -1 for the dead."
    lengths: IntArray
    "(rows,): the words of each passage; 0 for documents and the dead."
    n_passages: IntArray
    "(D,): how many passages each document has."
    document_lengths: FloatArray
    "(D,): the words of each document."


class Lexical(NamedTuple):
    """Scores by words; divided by `total` or `document_total` they do not depend on how long the query is."""

    bm25: FloatArray
    "(rows,): BM25 of passages."
    inside: FloatArray
    "(rows,): BM25 in which a word weighs no more than it is rare inside of the document."
    covered: FloatArray
    "(rows,): the rarity of the words that a passage holds."
    covered_inside: FloatArray
    "(rows,): their rarity inside of the document, as a share of that of all words that it holds."
    documents: FloatArray
    "(D,): BM25 of documents."
    best: FloatArray
    "(D,): the largest BM25 of a passage."
    documents_covered: FloatArray
    "(D,): the rarity of the words that a document holds."
    missing: FloatArray
    "(D,): how rare the rarest word is that a document does not hold, from 0 to 1."
    missing_name: FloatArray
    "(D,): the same of names."
    rarity: FloatArray
    "(T,): how rare each word is among all passages."
    rarity_inside: FloatArray
    "(T, D): how rare each word is among the passages of each document."
    total: float
    "The sum of `rarity`."
    document_total: float
    "The same among documents."


def lexical(
    terms: Sequence[Term],
    postings: Callable[[str], Postings],
    adjacent: Callable[[tuple[str, str]], IntArray],
    named: Callable[[str], IntArray],
    shape: Shape,
) -> Lexical:
    """Score all passages and documents.

    `adjacent` gives the passages where two stems stand side by side, `named` the documents whose file's name
    holds a stem.
    """
    rows, documents = len(shape.owner), len(shape.n_passages)
    passages = int(shape.n_passages.sum())
    saturation = K1 * (1 - B + B * shape.lengths / max(1.0, shape.lengths.sum() / max(1, passages)))
    mean = max(1.0, shape.document_lengths.mean() if documents else 1.0)
    slack = 1 - B + B * shape.document_lengths / mean
    scores, inside, covered, covered_inside = np.zeros((4, rows))
    by_document, documents_covered, missing, missing_name, present = np.zeros((5, documents))
    rarity, rarity_inside = np.zeros(len(terms)), np.zeros((len(terms), documents), np.float32)
    document_total, rarest = 0.0, float(_idf(passages, 0))
    for number, term in enumerate(terms):
        own, counts = _occurrences(term, postings, adjacent, rows)
        alive = shape.owner[own] >= 0
        own, counts = own[alive], counts[alive]
        count_in = np.bincount(shape.owner[own], counts, minlength=documents)
        for stem in term.stems:
            count_in[named(stem)] += 1
        text = shape.lengths[own] > 0
        own, counts = own[text], counts[text]
        holder = shape.owner[own]
        holding = np.bincount(holder, minlength=documents)
        rarity[number] = _idf(passages, len(own))
        rarity_inside[number] = local = _idf(shape.n_passages, holding)
        gain = counts * (K1 + 1) / (counts + saturation[own])
        scores[own] += rarity[number] * gain
        inside[own] += np.minimum(local[holder], rarity[number]) * gain
        covered[own] += rarity[number]
        covered_inside[own] += local[holder]
        present += local * (holding > 0)
        weight = float(_idf(documents, int((count_in > 0).sum())))
        by_document += weight * count_in / (count_in + slack)
        documents_covered += weight * (count_in > 0)
        lacking = np.where(count_in > 0, 0, rarity[number] / rarest)
        np.maximum(missing, lacking, out=missing)
        if term.name:
            np.maximum(missing_name, lacking, out=missing_name)
        document_total += weight
    live = np.flatnonzero(scores)
    held = present[shape.owner[live]]
    covered_inside[live] = np.divide(covered_inside[live], held, out=np.zeros(len(live)), where=held > 0)
    return Lexical(
        *(scores, inside, covered, covered_inside, by_document, _largest(scores, shape.owner, documents)),
        *(documents_covered, missing, missing_name, rarity, rarity_inside),
        *(max(1e-9, float(rarity.sum())), max(1e-9, document_total)),
    )


def _largest(scores: FloatArray, owner: IntArray, documents: int) -> FloatArray:
    """(D,): the largest score of a passage of each document."""
    best, live = np.zeros(documents), np.flatnonzero(scores)
    np.maximum.at(best, owner[live], scores[live])
    return best


def _occurrences(
    term: Term,
    postings: Callable[[str], Postings],
    adjacent: Callable[[tuple[str, str]], IntArray],
    rows: int,
) -> Postings:
    """Where a word occurs in any of its forms, and how often."""
    found = [postings(stem) for stem in term.stems]
    if term.together:
        both = adjacent(term.together)
        found.append(Postings(both, np.ones(len(both), np.int64)))
    found = [each for each in found if len(each.rows)]
    if len(found) == 1:
        return found[0]
    sums = np.zeros(rows, np.int64)
    for each in found:
        sums[each.rows] += each.counts
    places = np.flatnonzero(sums)
    return Postings(places, sums[places])


def _idf(passages: IntArray | int, holding: IntArray | int) -> FloatArray:
    """log(1 + (P - p + 0.5) / (p + 0.5)): how rare a word is that p of P passages hold."""
    rarity: FloatArray = np.log1p((np.asarray(passages) - holding + 0.5) / (np.asarray(holding) + 0.5))
    return rarity
