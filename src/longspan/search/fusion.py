"""Fusion: from what vectors, tokens, words and the shape of a passage say to one score.

The score is linear, and weights are chosen by maximum likelihood on questions about other documents than any
that is measured (`python -m benchmarks.fusion`; docs/lab-notes.md has the experiments). A re-ranker takes the
place of `score`: it gets the candidates and gives each a number.
"""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from longspan.shapes import BoolArray, FloatArray, IntArray

MEANING = ("cosine", "inside_cosine", "rare_cosine", "document_cosine")
"""Cosines: with the query, the same by rarity of its words in the document or anywhere, of the document."""
TOKENS = ("max_sim", "inside_max_sim", "rare_max_sim", "coverage")
"""Of tokens: the query's best matches, the same by rarity, and how much of the passage is matched."""
WORDS = ("inside_bm25", "document_bm25", "covered", "covered_inside", "document_best")
SHAPE = ("position", "first", "upper", "capitalized", "digits", "punctuation", "number", "name")
FEATURES = (*MEANING, *TOKENS, *WORDS, *SHAPE)

_WANTS_NUMBER = re.compile(
    r"\b(?:how (?:much|many|long|often|old|far|large|big|fast|soon|early|late|high)|when|year|date|percent"
    r"|percentage|price|amount|sum|share|number|size|time|rate|age|cap|fee|limit|default|minimum|maximum"
    r"|deadline|cost|salary|income|days?|years?|months?|port|value)\b",
    re.IGNORECASE,
)
_WANTS_NAME = re.compile(r"\b(?:who|whom|whose|which|where)\b", re.IGNORECASE)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty"
    r"|sixty|ninety|hundred|thousand|million|half|once|twice)\b",
    re.IGNORECASE,
)


def wants(query: str, text: str) -> float:
    """0.5 if a question asks for a number and the text holds one, -0.5 if it holds none, 0 if none is asked.

    >>> wants("How many sheep?", "There were twelve."), wants("How many sheep?", "Some."), wants("Why?", "7")
    (0.5, -0.5, 0.0)
    """
    return (0.5 if _NUMBER.search(text) else -0.5) if _WANTS_NUMBER.search(query) else 0.0


_KINDS = np.array(
    [
        c.isupper() + 2 * c.isdigit() + 4 * (not c.isalnum() and not c.isspace()) + 8 * c.isspace()
        for c in map(chr, range(0x250))
    ],
    np.uint8,
)
"""What the characters of most alphabets are: capitals 1, digits 2, punctuation 4, white space 8."""


def shapes(query: str, texts: Sequence[str], positions: FloatArray) -> dict[str, FloatArray]:
    """What the look of passages says, whatever they are about: title pages, lists and tables look different.

    `positions` are the places of passages in their documents, from 0 to 1; texts are not empty.
    """
    points = np.frombuffer("".join(f" {text}" for text in texts).encode("utf-32-le", "surrogatepass"), "<u4")
    kinds = np.append(_KINDS, 0).astype(np.uint8)[np.minimum(points, len(_KINDS))]
    sizes = np.array([len(text) + 1 for text in texts])
    begins = np.cumsum(sizes) - sizes

    def count(marks: BoolArray) -> IntArray:
        return np.add.reduceat(marks, begins, dtype=np.int64)

    upper, digit, other, space = ((kinds & bit) > 0 for bit in (1, 2, 4, 8))
    starts = np.append(False, space[:-1]) & ~space
    capitalized = count(starts & upper) / np.maximum(1, count(starts))
    asked = _WANTS_NUMBER.search(query)
    columns = (
        positions,
        positions == 0,
        count(upper) / sizes,
        capitalized,
        count(digit) / sizes,
        count(other) / sizes,
        np.array([0.5 if _NUMBER.search(text) else -0.5 for text in texts])
        if asked
        else np.zeros(len(texts)),
        capitalized if _WANTS_NAME.search(query) else np.zeros(len(texts)),
    )
    return dict(zip(SHAPE, columns, strict=True))


WEIGHTS: dict[str, dict[str, float]] = {
    "tokens": {
        "cosine": 2.42,
        "inside_cosine": 10.69,
        "rare_cosine": -9.28,
        "document_cosine": 6.99,
        "max_sim": 11.36,
        "inside_max_sim": 26.53,
        "rare_max_sim": -15.42,
        "coverage": 13.15,
        "inside_bm25": -2.04,
        "document_bm25": 4.34,
        "covered": 0.64,
        "covered_inside": 1.36,
        "document_best": 4.23,
        "position": -0.12,
        "first": -0.77,
        "upper": -5.06,
        "capitalized": 0.59,
        "digits": -1.17,
        "punctuation": -0.67,
        "number": 0.58,
        "name": 1.97,
    },
    "vectors": {
        "cosine": 6.14,
        "inside_cosine": 21.05,
        "rare_cosine": -13.91,
        "document_cosine": 7.79,
        "inside_bm25": 0.43,
        "document_bm25": 5.38,
        "covered": 1.97,
        "covered_inside": 2.03,
        "document_best": 3.96,
        "position": -0.19,
        "first": -0.63,
        "upper": -4.81,
        "capitalized": 0.21,
        "digits": -1.77,
        "punctuation": -1.13,
        "number": 0.61,
        "name": 2.05,
    },
    "words": {
        "inside_bm25": 6.72,
        "document_bm25": 9.72,
        "covered": 2.63,
        "covered_inside": 2.57,
        "document_best": 4.85,
        "position": -0.71,
        "first": -0.47,
        "upper": -2.88,
        "capitalized": -2.96,
        "digits": 1.63,
        "punctuation": -4.22,
        "number": 1.26,
        "name": 3.53,
    },
    "dense tokens": {
        "cosine": -0.5,
        "document_cosine": 7.01,
        "max_sim": 27.75,
        "coverage": 22.98,
    },
    "dense vectors": {
        "cosine": 17.91,
        "document_cosine": 9.3,
    },
    "own": {
        "own": 1.75,
    },
}
"""For passages of documents with vectors of tokens, with vectors of passages only, and not read yet; "own"
for models that compare tokens themselves."""
COSINES, MAX_SIMS = (0.04, 0.084), (0.13, 0.036)
"""The mean and the spread, over the passages of an index, of what the weights were fitted to."""
CONFIDENCE: dict[str, dict[str, float]] = {
    "tokens": {
        "cosine": -0.44,
        "inside_cosine": 5.31,
        "rare_cosine": -2.54,
        "document_cosine": -0.29,
        "max_sim": -0.14,
        "inside_max_sim": 2.69,
        "rare_max_sim": -2.72,
        "coverage": 0.57,
        "covered": 2.47,
        "covered_inside": 0.2,
        "document_bm25": 2.71,
        "document_best": -1.96,
        "inside_bm25": -1.36,
        "document_covered": -0.81,
        "missing": 0.34,
        "missing_name": -1.82,
        "share": 1.19,
        "constant": -2.1,
    },
    "vectors": {
        "cosine": -0.04,
        "inside_cosine": 6.1,
        "rare_cosine": -3.21,
        "document_cosine": -0.51,
        "covered": 2.58,
        "covered_inside": 0.29,
        "document_bm25": 2.58,
        "document_best": -2.06,
        "inside_bm25": -1.44,
        "document_covered": -0.72,
        "missing": 0.2,
        "missing_name": -1.79,
        "share": 1.03,
        "constant": -2.15,
    },
    "words": {
        "covered": 2.51,
        "covered_inside": 0.74,
        "document_bm25": 3.3,
        "document_best": -2.31,
        "inside_bm25": -0.47,
        "document_covered": -0.39,
        "missing": 0.29,
        "missing_name": -1.98,
        "share": 0.79,
        "constant": -2.06,
    },
    "dense tokens": {
        "cosine": 1.98,
        "document_cosine": -0.33,
        "max_sim": 5.26,
        "coverage": -3.06,
        "share": 1.66,
        "constant": -2.7,
    },
    "dense vectors": {
        "cosine": 4.2,
        "document_cosine": 0.31,
        "share": 1.12,
        "constant": -2.53,
    },
    "own": {
        "own": 0.17,
        "share": 2.23,
        "constant": -3.59,
    },
}
"""Logistic regression on what is known of the best candidate: whether there is an answer at all."""
ANSWERED = 0.33
"""The confidence below which the best passages are not called an answer: a tenth of the answers is lost."""
DOCUMENT_MEANING = 0.5
"""How much the meaning of a document counts beside its words."""
SHARPNESS = {"hybrid": 16.0, "dense": 36.0}
"""From a document's score to how likely it is the one: the softmax of the score times this, by likelihood."""


def score(features: Mapping[str, FloatArray], kind: str) -> FloatArray:
    """One number for each candidate: larger is better."""
    total: FloatArray = np.sum([weight * features[name] for name, weight in WEIGHTS[kind].items()], axis=0)
    return total


def likelihood(features: Mapping[str, FloatArray], kind: str) -> tuple[FloatArray, float]:
    """How likely each candidate answers, and how likely one of them does: the first sum up to the second."""
    scores = score(features, kind)
    best = int(scores.argmax())
    shares = np.exp(scores - scores[best])
    shares /= shares.sum()
    known = {name: float(column[best]) for name, column in features.items()}
    known |= {"share": float(shares[best]), "constant": 1.0}
    evidence = sum(weight * known[name] for name, weight in CONFIDENCE[kind].items())
    confidence = 1 / (1 + math.exp(-evidence))
    return confidence * shares, confidence
