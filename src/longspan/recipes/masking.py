"""Masking: which tokens of an example are to be found, and what the model sees in their place."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from longspan.corpus.spelling import Spelling
from longspan.errors import bad, number, one_of
from longspan.shapes import FloatArray, IntArray

UNITS = ("token", "word")


class Masked(NamedTuple):
    """An example as the model sees it."""

    ids: IntArray
    rows: IntArray
    "The tokens that are to be found, in ascending order."
    targets: IntArray
    "What they are."


@dataclass(frozen=True, kw_only=True)
class Masking:
    """A share `rate` of the tokens, or of whole words, is to be found.

    Most of them are masked, some are replaced by random tokens, and the rest is left as it is (Devlin et al.
    2019, section 3.1). 15 % is usual; Warner et al. 2024 mask 30 %.
    """

    unit: str = "token"
    rate: float = 0.15
    masked: float = 0.8
    random: float = 0.1

    def __post_init__(self) -> None:
        one_of("masking", self.unit, UNITS)
        if not number("rate", self.rate, 0.0, 1.0):
            raise bad("rate", "above 0", self.rate)
        for name in ("masked", "random"):
            number(name, getattr(self, name), 0.0, 1.0)
        if self.masked + self.random > 1 + 1e-9:
            raise bad("random", f"at most {1 - self.masked:g}, what `masked` leaves", self.random)

    def apply(self, ids: IntArray, spelling: Spelling, mask: int, key: "Key") -> Masked:
        """An example of which at least one token is to be found, unless all are special."""
        ordinary = np.flatnonzero(~spelling.special[ids])
        units = spelling.words(ids)[ordinary] if self.unit == "word" else np.arange(ordinary.size)
        _, units = np.unique(units, return_inverse=True)
        count = int(units.max(initial=-1)) + 1
        draws = uniform(key, 1 + count + 2 * ordinary.size)
        wanted = min(count, max(1, int(self.rate * count + draws[0])))
        chosen = np.zeros(count, bool)
        chosen[np.argsort(draws[1 : count + 1], kind="stable")[:wanted]] = True
        picked = chosen[units]
        rows = ordinary[picked]
        kind, other = draws[1 + count :].reshape(2, -1)[:, picked]
        seen, targets = ids.copy(), ids[rows]
        seen[rows[kind < self.masked]] = mask
        swapped = (kind >= self.masked) & (kind < self.masked + self.random)
        words = spelling.ordinary
        seen[rows[swapped]] = words[(other[swapped] * words.size).astype(np.int64)]
        return Masked(seen, rows, targets)


class Key(NamedTuple):
    """What random numbers are drawn by: nothing else has to be kept to draw them again."""

    seed: int
    epoch: int
    example: int
    purpose: int = 0


def uniform(key: Key, count: int) -> FloatArray:
    """So many numbers from 0 up to, but not 1: the bits of a counter-based generator (Salmon et al. 2011).

    >>> bool((uniform(Key(0, 1, 2), 3) == uniform(Key(0, 1, 2), 5)[:3]).all())
    True
    """
    seed = key.seed % 2**64
    bits = np.random.Philox(key=[seed, key.example], counter=[0, 0, key.epoch, key.purpose])
    raw = bits.random_raw(count)  # the stream of bits never changes; those of numpy's Generator may
    return (np.asarray(raw, np.uint64) >> np.uint64(11)) * 2.0**-53
