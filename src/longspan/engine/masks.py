"""From candidate tile pairs to entries: which pairs are empty, full or partial, and the pool of bit masks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import gcd
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from longspan.engine.tiling import COLUMN, TILE, Bits, Tiles, distinct, low, pack, ragged
from longspan.layout import Site
from longspan.patterns.base import Pattern
from longspan.shapes import BoolArray, IntArray

BATCH = 1 << 18
"""How many pairs of rows are evaluated together: what fits into a core's cache."""


class Pairs(NamedTuple):
    """P pairs of a query tile and a key tile."""

    q: IntArray
    k: IntArray
    keep: Bits
    "The keys of the tile that this pair stands for, as bits."


Scalar = TypeVar("Scalar", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Pool:
    """Distinct arrays, numbered in the order in which they first appear."""

    numbers: dict[bytes, int] = field(default_factory=dict)

    def add(self, arrays: npt.NDArray[np.generic]) -> npt.NDArray[np.int64]:
        """The numbers of A arrays, (A, ...) -> (A,); equal neighbors cost next to nothing."""
        numbers, new = self.numbers, np.ones(len(arrays), bool)
        new[1:] = np.any(arrays[1:] != arrays[:-1], axis=tuple(range(1, arrays.ndim)))
        distinct = [numbers.setdefault(array.tobytes(), len(numbers)) for array in arrays[new]]
        return np.take(np.array(distinct, np.int64), np.cumsum(new) - 1)

    def array(self, dtype: type[Scalar], *shape: int) -> npt.NDArray[Scalar]:
        """The distinct arrays, by number."""
        return np.frombuffer(bytearray(b"".join(self.numbers)), dtype).reshape(-1, *shape)


class Likeness(NamedTuple):
    """Pairs of tiles by kind: a pattern cannot tell pairs of one kind apart."""

    first: IntArray
    "(U,) a pair of each kind."
    kind: IntArray
    "(P,) the kind of each pair."
    height: IntArray
    width: IntArray
    "(U,) the most query and key rows that a pair of this kind has."


class Look(NamedTuple):
    """Some kinds of pairs, evaluated together."""

    kinds: IntArray
    "(A,)"
    grain: int
    "One row and one key of every so many are evaluated."
    height: int
    width: int
    "How many rows and keys: powers of 2."
    q: Site
    "(A, height / grain, 1); a tile with fewer rows repeats its last."
    k: Site
    "(A, 1, width / grain)"


def alike(q: Tiles, k: Tiles, pairs: Pairs, shift: int) -> Likeness:
    """Pairs of even tiles are alike if one is the other shifted by a multiple of `shift`; 0: none are."""
    height, width = q.size[pairs.q], k.size[pairs.k]
    if shift == 0:
        every = np.arange(pairs.q.size)
        return Likeness(every, every, height, width)
    base = q.lo[pairs.q]
    odd = (q.shape[pairs.q] < 0) | (k.shape[pairs.k] < 0)
    alone = np.where(odd, np.arange(odd.size), -1)
    first, kind = distinct(k.lo[pairs.k] - base, base % shift, q.shape[pairs.q], k.shape[pairs.k], alone)
    tallest, widest = np.zeros((2, first.size), np.int64)
    np.maximum.at(tallest, kind, height)
    np.maximum.at(widest, kind, width)
    return Likeness(first, kind, tallest, widest)


def entries(pattern: Pattern, q: Tiles, k: Tiles, pairs: Pairs, pool: Pool) -> IntArray:
    """(3, E): the pair's place among `pairs`, the mask's number or -1 for full, the multiplicity."""
    likeness = alike(q, k, pairs, pattern.shift)
    kind, times, verdict, verdicts = _judged(pattern, q, k, pairs, likeness)
    begin, end = (np.searchsorted(kind, likeness.kind, side=side) for side in ("left", "right"))
    pair, part = ragged(begin, end - begin)
    # Pairs with the same verdict may still differ in how many rows are real and which keys are kept.
    rows, keys, keep = q.size[pairs.q[pair]], k.size[pairs.k[pair]], pairs.keep[pair]
    first, variant = distinct(verdict[part], rows, keys, keep)
    rows, keys, keep = rows[first], keys[first], keep[first]
    real = np.where(rows[:, None] > COLUMN, keep[:, None], np.uint64(0))  # (V, 64)
    seen = verdicts[verdict[part[first]]] & real
    nonempty = np.any(seen, axis=1)
    partial = nonempty & ~(np.all(seen == real, axis=1) & (keep == low(keys)))
    number = np.full(first.size, -1)
    number[partial] = pool.add(seen[partial])
    return np.stack([pair, number[variant], times[part]])[:, nonempty[variant]]


def _judged(
    pattern: Pattern, q: Tiles, k: Tiles, pairs: Pairs, likeness: Likeness
) -> tuple[IntArray, IntArray, IntArray, Bits]:
    """What the pattern says about each kind of pair, once for each multiplicity.

    Kinds and multiplicities, ascending; the number of the verdict; the verdicts as (V, 64) masks.
    """
    parts, pool = [np.zeros((3, 0), np.int64)], Pool()
    for look in looks(q, k, pairs, likeness, pattern.grain):
        shape = np.broadcast_shapes(look.q.shape, look.k.shape)  # (A, height / grain, width / grain)
        count = np.broadcast_to(pattern.count(look.q, look.k), shape)
        for m in _values(count):
            bits = pack(np.repeat(count == m, look.grain, axis=2))
            masks = np.zeros((look.kinds.size, TILE), np.uint64)
            masks[:, : look.height] = np.repeat(bits, look.grain, axis=1)
            parts.append(np.stack([look.kinds, np.full(look.kinds.size, m), pool.add(masks)]))
    columns = np.concatenate(parts, axis=1)
    kind, times, verdict = columns[:, np.argsort(columns[0], kind="stable")]
    return kind, times, verdict, pool.array(np.uint64, TILE)


def _values(count: IntArray) -> list[int]:
    """The multiplicities that occur, ascending, without 0."""
    largest = int(count.max(initial=0))
    return list(range(1, largest + 1)) if largest <= 1 else [m for m in np.unique(count).tolist() if m]


def looks(q: Tiles, k: Tiles, pairs: Pairs, likeness: Likeness, grain: int = 1) -> Iterator[Look]:
    """Every kind of pair once, in batches of like size.

    Where both tiles are aligned to the grain of a pattern, one look decides a whole square.
    """
    square = gcd(grain, TILE)  # for a pattern without grain (0), the whole tile
    aligned = (_aligned(q, square)[pairs.q] & _aligned(k, square)[pairs.k])[likeness.first] & (square > 1)
    height, width = (np.where(aligned, TILE, _rounded(size)) for size in (likeness.height, likeness.width))
    code = (height << 8 | width) << 1 | aligned
    for group in sorted(set(code.tolist())):
        kinds = np.flatnonzero(code == group)
        tall, wide, step = group >> 9, group >> 1 & 255, square if group & 1 else 1
        batch = max(BATCH * step * step // (tall * wide), 1)
        for begin in range(0, kinds.size, batch):
            members = kinds[begin : begin + batch]
            pair = likeness.first[members, None]
            i = np.minimum(np.arange(0, tall, step), likeness.height[members, None] - 1)
            j = np.minimum(np.arange(0, wide, step), likeness.width[members, None] - 1)
            query, key = q.sites[pairs.q[pair], i][:, :, None], k.sites[pairs.k[pair], j][:, None, :]
            yield Look(members, step, tall, wide, query, key)


def _aligned(tiles: Tiles, square: int) -> BoolArray:
    aligned: BoolArray = tiles.even & (tiles.spacing == 1) & (tiles.lo % square == 0)
    return aligned


def _rounded(size: IntArray) -> IntArray:
    """The next power of 2."""
    return 1 << np.ceil(np.log2(size)).astype(np.int64)
