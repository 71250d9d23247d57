"""Precision, recall and F1 from what was said, what is true and what is both."""

from typing import TypedDict


class PrecisionRecall(TypedDict):
    """The share of what was said that is true, of what is true that was said, and their harmonic mean."""

    precision: float
    recall: float
    f1: float


def ratio(part: float, whole: float) -> float:
    """A share; 0 of nothing, as the official scorers have it.

    >>> ratio(1, 4), ratio(0, 0)
    (0.25, 0.0)
    """
    return float(part / whole) if whole else 0.0


def harmonic(precision: float, recall: float) -> float:
    """F1: the harmonic mean, 0 if both are 0.

    >>> harmonic(1.0, 0.5)
    0.6666666666666666
    """
    return ratio(2 * precision * recall, precision + recall)


def precision_recall(hits: float, said: float, true: float) -> PrecisionRecall:
    """The three figures for so many hits among what was said and what is true.

    >>> precision_recall(1, 2, 4)
    {'precision': 0.5, 'recall': 0.25, 'f1': 0.3333333333333333}
    """
    return {"precision": ratio(hits, said), "recall": ratio(hits, true), "f1": ratio(2 * hits, said + true)}
