"""How well numbers follow others: Pearson's correlation, and Spearman's of their ranks."""

from collections.abc import Sequence

import numpy as np

from longspan.metrics.checks import numbers, pairs
from longspan.shapes import FloatArray


def pearson(predicted: Sequence[float], expected: Sequence[float]) -> dict[str, float]:
    """The linear correlation; nan if either side is constant, for which there is none.

    >>> round(pearson([1, 2, 3], [2, 4, 6])["pearson"], 6)
    1.0
    """
    return {"pearson": _correlation(*_arrays(predicted, expected))}


def spearman(predicted: Sequence[float], expected: Sequence[float]) -> dict[str, float]:
    """The correlation of ranks, by which sentence embeddings are judged; nan if either side is constant.

    >>> round(spearman([0.1, 0.5, 0.9], [1, 2, 3])["spearman"], 6)
    1.0
    """
    ours, theirs = _arrays(predicted, expected)
    return {"spearman": _correlation(_ranks(ours), _ranks(theirs))}


def _arrays(predicted: Sequence[float], expected: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    cases = pairs(predicted, expected)
    return numbers("predicted", [one for one, _ in cases]), numbers("expected", [other for _, other in cases])


def _correlation(ours: FloatArray, theirs: FloatArray) -> float:
    if not np.ptp(ours) or not np.ptp(theirs):
        return float("nan")
    return float(np.corrcoef(ours, theirs)[0, 1])


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks; equal values share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: FloatArray = ((ends - counts + ends - 1) / 2)[inverse]
    return ranks
