"""How far a figure moves by chance: 95 % intervals from resamples of the cases that it is over."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from longspan.errors import bad
from longspan.shapes import FloatArray, IntArray

RESAMPLES = 2000
Interval = tuple[float, float]
T = TypeVar("T")


def interval(values: FloatArray) -> Interval:
    """Where the mean lies in 95 % of RESAMPLES draws of as many values, with replacement (percentiles).

    >>> interval(np.ones(7))
    (1.0, 1.0)
    """
    return _middle([values[draw].mean() for draw in _draws(len(values))])


def interval_of(measure: Callable[[list[T]], float], cases: Sequence[T]) -> Interval:
    """The interval of any measure of cases, such as a micro F1 over documents, taken of every draw.

    >>> interval_of(
    ...     lambda shares: sum(hits for hits, _ in shares) / sum(size for _, size in shares), [(1, 2), (2, 4)]
    ... )
    (0.5, 0.5)
    """
    if not cases:
        raise bad("cases", "at least one case", cases)
    return _middle([measure([cases[i] for i in draw]) for draw in _draws(len(cases))])


def paired_interval(measure: Callable[[list[T]], float], ours: Sequence[T], theirs: Sequence[T]) -> Interval:
    """The interval of the difference of two methods on the same cases; 0 outside of it is hardly chance.

    >>> paired_interval(np.mean, [0.5, 1.0], [0.25, 0.75])
    (0.25, 0.25)
    """
    if len(ours) != len(theirs):
        raise bad("ours", f"{len(theirs)} cases, as many as `theirs`", len(ours))
    return interval_of(
        lambda places: measure([ours[i] for i in places]) - measure([theirs[i] for i in places]),
        range(len(ours)),
    )


def _draws(size: int) -> Iterator[IntArray]:
    rng = np.random.default_rng(0)
    return (rng.integers(size, size=size) for _ in range(RESAMPLES))


def _middle(figures: Sequence[float]) -> Interval:
    low, high = np.percentile(figures, [2.5, 97.5])
    return float(low), float(high)
