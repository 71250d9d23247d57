"""Fusion: from what vectors, tokens, words and the shape of a passage say to one score.

The score is linear, and weights are chosen by maximum likelihood on questions about other documents than any
that is measured (`python -m benchmarks.fusion`; docs/lab-notes.md has the experiments). A re-ranker takes the
place of `score`: it gets the candidates and gives each a number.
"""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from longspan.shapes import FloatArray

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


def shapes(query: str, texts: Sequence[str], positions: FloatArray) -> dict[str, FloatArray]:
    """What the look of passages says, whatever they are about: title pages, lists and tables look different.

    `positions` are the places of passages in their documents, from 0 to 1.
    """
    wants_name = bool(_WANTS_NAME.search(query))
    rows = np.zeros((len(texts), 6))
    for row, text in zip(rows, texts, strict=True):
        size, words = max(1, len(text)), text.split()
        capitalized = sum(word[:1].isupper() for word in words) / max(1, len(words))
        row[:] = (
            sum(map(str.isupper, text)) / size,
            capitalized,
            sum(map(str.isdigit, text)) / size,
            1 - (sum(map(str.isalnum, text)) + sum(map(str.isspace, text))) / size,
            wants(query, text),
            wants_name and capitalized,
        )
    columns = (positions, positions == 0, *rows.T)
    return dict(zip(SHAPE, columns, strict=True))


WEIGHTS: dict[str, dict[str, float]] = {
    "tokens": {
        "cosine": -4.94,
        "inside_cosine": 9.15,
        "document_cosine": 11.22,
        "max_sim": -5.95,
        "inside_max_sim": 25.48,
        "coverage": 16.17,
        "inside_bm25": 2.48,
        "document_bm25": 4.7,
        "covered": -2.36,
        "covered_inside": 1.42,
        "document_best": 6.9,
        "position": -0.79,
        "first": -1.14,
        "upper": -10.55,
        "capitalized": -0.66,
        "digits": 1.23,
        "punctuation": -0.62,
        "number": 1.05,
        "name": 6.05,
    },
    "vectors": {
        "cosine": -6.27,
        "inside_cosine": 19.89,
        "document_cosine": 12.23,
        "inside_bm25": 6.17,
        "document_bm25": 5.39,
        "covered": -0.42,
        "covered_inside": 1.76,
        "document_best": 7.15,
        "position": -0.81,
        "first": -0.89,
        "upper": -9.31,
        "capitalized": -0.58,
        "digits": -0.61,
        "punctuation": -0.93,
        "number": 0.92,
        "name": 5.44,
    },
    "words": {
        "inside_bm25": 9.1,
        "document_bm25": 10.11,
        "covered": 2.28,
        "covered_inside": 2.19,
        "document_best": 7.79,
        "position": -0.96,
        "first": -0.75,
        "upper": -7.86,
        "capitalized": -1.01,
        "digits": -0.5,
        "punctuation": -3.42,
        "number": 0.96,
        "name": 4.37,
    },
    "dense tokens": {
        "cosine": -1.39,
        "document_cosine": 12.87,
        "max_sim": 24.54,
        "coverage": 28.91,
    },
    "dense vectors": {
        "cosine": 17.75,
        "document_cosine": 15.19,
    },
}
"""For passages of documents with vectors of tokens, with vectors of passages only, and not read yet."""
CONFIDENCE: dict[str, dict[str, float]] = {
    "tokens": {
        "cosine": -1.32,
        "inside_cosine": 3.76,
        "document_cosine": 0.26,
        "max_sim": -3.29,
        "inside_max_sim": 3.17,
        "coverage": -0.89,
        "covered": 2.15,
        "covered_inside": -0.09,
        "document_bm25": 3.69,
        "document_best": -2.07,
        "inside_bm25": -0.83,
        "document_covered": -1.07,
        "missing": 0.4,
        "share": 1.79,
        "constant": -2.6,
    },
    "vectors": {
        "cosine": -2.05,
        "inside_cosine": 4.89,
        "document_cosine": -0.16,
        "covered": 2.41,
        "covered_inside": 0.08,
        "document_bm25": 2.8,
        "document_best": -2.05,
        "inside_bm25": -1.7,
        "document_covered": -0.27,
        "missing": 0.25,
        "share": 1.51,
        "constant": -2.78,
    },
    "words": {
        "covered": 2.99,
        "covered_inside": 0.26,
        "document_bm25": 3.74,
        "document_best": -2.94,
        "inside_bm25": -0.62,
        "document_covered": 0.23,
        "missing": 0.4,
        "share": 1.41,
        "constant": -2.56,
    },
    "dense tokens": {
        "cosine": 2.35,
        "document_cosine": -0.72,
        "max_sim": 5.94,
        "coverage": -3.3,
        "share": 1.8,
        "constant": -2.9,
    },
    "dense vectors": {
        "cosine": 4.87,
        "document_cosine": -0.19,
        "share": 1.58,
        "constant": -2.76,
    },
}
"""Logistic regression on what is known of the best candidate: whether there is an answer at all."""
ANSWERED = 0.34
"""The confidence below which the best passages are not called an answer; a tenth of those that are is lost."""
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
