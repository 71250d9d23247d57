"""A random order that is computed where it is needed, so that no state can be lost or be wrong."""

import numpy as np
from numpy.typing import NDArray

from longspan.shapes import IntArray

ROUNDS = 6
_MULTIPLIERS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def shuffled(positions: IntArray, count: int, key: tuple[int, int]) -> IntArray:
    """The examples at some positions of a random order of `count`, one for each key (seed, epoch).

    A permutation that is computed where it is needed: a Feistel network over the next power of four, which
    is applied again to what falls outside (Black and Rogaway 2002).

    >>> sorted(shuffled(np.arange(7), 7, (0, 1)).tolist())
    [0, 1, 2, 3, 4, 5, 6]
    """
    half = np.uint64(max(1, (count - 1).bit_length() + 1 >> 1))
    mask = np.uint64((1 << int(half)) - 1)
    keys = np.random.SeedSequence(key).generate_state(ROUNDS, np.uint64)
    values = positions.astype(np.uint64)
    outside = np.ones(len(values), bool)
    while outside.any():
        left, right = values[outside] >> half, values[outside] & mask
        for own in keys:
            left, right = right, left ^ (_mixed(right ^ own) & mask)
        values[outside] = left << half | right
        outside = values >= np.uint64(count)
    return values.astype(np.int64)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit of the result depends on every bit of the value (the finalizer of SplitMix64)."""
    values = (values ^ values >> np.uint64(30)) * _MULTIPLIERS[0]
    values = (values ^ values >> np.uint64(27)) * _MULTIPLIERS[1]
    return values ^ values >> np.uint64(31)
