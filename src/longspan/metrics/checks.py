"""What every measure asks of its input."""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

import numpy as np

from longspan.errors import bad
from longspan.shapes import FloatArray

P = TypeVar("P")
E = TypeVar("E")


def pairs(predicted: Iterable[P], expected: Iterable[E]) -> list[tuple[P, E]]:
    """Each prediction beside what is right; there must be as many of both, and at least one.

    >>> pairs("ab", [1, 2])
    [('a', 1), ('b', 2)]
    """
    ours, theirs = list(predicted), list(expected)
    if not theirs:
        raise bad("expected", "at least one right result", theirs, "Nothing can be measured without any.")
    if len(ours) != len(theirs):
        raise bad("predicted", f"{len(theirs)} results, as many as `expected`", len(ours))
    return list(zip(ours, theirs, strict=True))


def numbers(name: str, values: Sequence[float] | FloatArray, size: int | None = None) -> FloatArray:
    """The values as an array of floats (N,), at least one, all finite, and `size` of them if that is given.

    >>> numbers("scores", [1, 0.5])
    array([1. , 0.5])
    """
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or not array.size:
        raise bad(name, "a list of at least one number", values)
    if size is not None and len(array) != size:
        raise bad(name, f"{size} numbers, one for each case", len(array))
    if not np.isfinite(array).all():
        place = int(np.flatnonzero(~np.isfinite(array))[0])
        raise bad(f"{name}[{place}]", "a finite number", float(array[place]))
    return array


def known(name: str, values: Iterable[Hashable], labels: Sequence[Hashable]) -> None:
    """Refuses a value that is not among the labels.

    >>> known("expected", ["yes"], ["no", "yes"])
    """
    allowed = set(labels)
    for value in values:
        if value not in allowed:
            repair = "Add it to `labels`, or correct the data."
            raise bad(name, f"one of {', '.join(map(str, labels))}", value, repair)
