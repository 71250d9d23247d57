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

MEANING = ("cosine", "inside_cosine", "document_cosine")
"""Cosines: with the query, with its words weighed by their rarity inside of the document, of the document."""
TOKENS = ("max_sim", "inside_max_sim", "coverage")
"""Of tokens: the query's best matches, the same by rarity inside, and how much of the passage is matched."""
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
        "cosine": -5.4,
        "inside_cosine": 9.5,
        "document_cosine": 11.3,
        "max_sim": -5.99,
        "inside_max_sim": 25.05,
        "coverage": 16.96,
        "inside_bm25": 2.56,
        "document_bm25": 4.55,
        "covered": -2.34,
        "covered_inside": 1.48,
        "document_best": 6.03,
        "position": -0.84,
        "first": -1.16,
        "upper": -11.05,
        "capitalized": -0.51,
        "digits": 1.59,
        "punctuation": -0.45,
        "number": 1.24,
        "name": 5.99,
    },
    "vectors": {
        "cosine": -6.8,
        "inside_cosine": 20.43,
        "document_cosine": 12.44,
        "inside_bm25": 6.31,
        "document_bm25": 5.14,
        "covered": -0.45,
        "covered_inside": 1.79,
        "document_best": 6.36,
        "position": -0.87,
        "first": -0.92,
        "upper": -9.63,
        "capitalized": -0.45,
        "digits": -0.52,
        "punctuation": -0.8,
        "number": 1.08,
        "name": 5.37,
    },
    "words": {
        "inside_bm25": 8.97,
        "document_bm25": 9.06,
        "covered": 2.27,
        "covered_inside": 2.17,
        "document_best": 6.2,
        "position": -0.95,
        "first": -0.73,
        "upper": -8.07,
        "capitalized": -0.84,
        "digits": -0.26,
        "punctuation": -3.37,
        "number": 1.02,
        "name": 4.06,
    },
    "dense tokens": {
        "cosine": -1.4,
        "document_cosine": 11.96,
        "max_sim": 23.14,
        "coverage": 29.53,
    },
    "dense vectors": {
        "cosine": 17.25,
        "document_cosine": 13.66,
    },
}
"""For passages of documents with vectors of tokens, with vectors of passages only, and not read yet."""
CONFIDENCE: dict[str, dict[str, float]] = {
    "tokens": {
        "cosine": -1.18,
        "inside_cosine": 3.84,
        "document_cosine": 0.37,
        "max_sim": -4.95,
        "inside_max_sim": 4.49,
        "coverage": -0.87,
        "covered": 2.37,
        "covered_inside": -0.14,
        "document_bm25": 3.14,
        "document_best": -1.82,
        "inside_bm25": -0.86,
        "document_covered": -1.29,
        "missing": 0.64,
        "missing_name": -1.79,
        "share": 1.61,
        "constant": -2.26,
    },
    "vectors": {
        "cosine": -2.5,
        "inside_cosine": 5.18,
        "document_cosine": 0.02,
        "covered": 2.62,
        "covered_inside": 0.21,
        "document_bm25": 2.26,
        "document_best": -2.02,
        "inside_bm25": -1.5,
        "document_covered": -0.42,
        "missing": 0.42,
        "missing_name": -1.78,
        "share": 1.38,
        "constant": -2.47,
    },
    "words": {
        "covered": 3.43,
        "covered_inside": 0.41,
        "document_bm25": 2.9,
        "document_best": -2.72,
        "inside_bm25": -0.67,
        "document_covered": 0.16,
        "missing": 0.58,
        "missing_name": -1.86,
        "share": 1.08,
        "constant": -2.31,
    },
    "dense tokens": {
        "cosine": 2.06,
        "document_cosine": -0.53,
        "max_sim": 6.59,
        "coverage": -3.46,
        "share": 1.68,
        "constant": -3.02,
    },
    "dense vectors": {
        "cosine": 5.23,
        "document_cosine": -0.19,
        "share": 1.37,
        "constant": -2.88,
    },
}
"""Logistic regression on what is known of the best candidate: whether there is an answer at all."""
ANSWERED = 0.3
"""The confidence below which the best passages are not called an answer: a tenth of the answers is lost."""
DOCUMENT_MEANING = 0.5
"""How much the meaning of a document counts beside its words."""


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
