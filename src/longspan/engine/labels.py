"""Labels of pairs, by which score terms look up their values: distances, segments, relations."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from longspan.engine.masks import Pairs, Pool, alike, looks
from longspan.engine.tiling import COLUMN, TILE, Bits, Tiles, changes
from longspan.errors import InputError, whole
from longspan.layout import Site
from longspan.shapes import BoolArray, IntArray


class Labels(Protocol):
    """A hashable value that gives every pair of sites a number from 0 to size - 1.

    It may also have a `shift`, as patterns do: a promise that the label stays the same when both sites move
    by that many positions, and depends only on positions, `last` and marks. Plans then build faster.
    """

    @property
    def size(self) -> int:
        """The number of labels."""

    def label(self, q: Site, k: Site) -> IntArray:
        """The label of each pair of sites, broadcast."""


@dataclass(frozen=True)
class ClippedDistance:
    """How far the key comes after the query, from -limit to limit, as 0 to 2 * limit.

    >>> ClippedDistance(2).size
    5
    """

    limit: int

    def __post_init__(self) -> None:
        whole("limit", self.limit, 0)

    @property
    def size(self) -> int:
        """The number of labels."""
        return 2 * self.limit + 1

    @property
    def shift(self) -> int:
        """1: a distance stays the same wherever the pair moves."""
        return 1

    def label(self, q: Site, k: Site) -> IntArray:
        """The clipped distance of each pair of sites, broadcast."""
        distance: IntArray = np.clip(k.position - q.position, -self.limit, self.limit)
        return distance + self.limit


@dataclass(frozen=True)
class UnsignedDistance:
    """How far apart query and key are, up to a limit: what a model needs that looks to one side only.

    >>> UnsignedDistance(2).size
    3
    """

    limit: int

    def __post_init__(self) -> None:
        whole("limit", self.limit, 0)

    @property
    def size(self) -> int:
        """The number of labels."""
        return self.limit + 1

    @property
    def shift(self) -> int:
        """1: a distance stays the same wherever the pair moves."""
        return 1

    def label(self, q: Site, k: Site) -> IntArray:
        """The clipped distance of each pair of sites, broadcast."""
        distance: IntArray = np.minimum(np.abs(k.position - q.position), self.limit)
        return distance


@dataclass(frozen=True, eq=False)
class LabelTiles:
    """The distinct label tiles of one class of heads, collected group by group."""

    labels: Labels
    pool: Pool = field(default_factory=Pool)
    allowed: list[Bits] = field(default_factory=list)
    "Which pairs of a tile are allowed in any of its entries."

    def add(self, q: Tiles, k: Tiles, pairs: Pairs, bits: Bits) -> IntArray:
        """The tile numbers of entries; `bits` (E, 64) are their allowed pairs."""
        likeness = alike(q, k, pairs, getattr(self.labels, "shift", 0))
        number = np.empty(likeness.first.size, np.int64)
        for look in looks(q, k, pairs, likeness):
            tiles = np.full((look.kinds.size, TILE, TILE), -1, np.int32)
            tiles[:, : look.height, : look.width] = self.labels.label(look.q, look.k)
            number[look.kinds] = self.pool.add(tiles)
        new = len(self.pool.numbers) - len(self.allowed)
        self.allowed.extend(np.zeros((new, TILE), np.uint64))
        number = number[likeness.kind]
        order = np.argsort(number, kind="stable")
        start = np.flatnonzero(changes(number[order]))
        union = np.bitwise_or.reduceat(bits[order], start) if start.size else bits
        for tile, seen in zip(number[order][start], union, strict=True):
            self.allowed[tile] |= seen
        return number

    def ranked(self) -> tuple[IntArray, IntArray]:
        """The tiles (A, 64, 64) as ranks in the list of labels used, and that list, ascending or descending.

        A tile in which rank[i][j] can be rank[i][0] + j everywhere becomes such a *ramp*: pairs that no entry
        allows then get ranks that may lie outside the list. The list runs in the direction of more ramps.
        """
        labels: IntArray = self.pool.array(np.int32, TILE, TILE)
        octets = np.array(self.allowed, "<u8").reshape(-1, TILE, 1).view(np.uint8)
        allowed = np.unpackbits(octets, axis=2, bitorder="little").view(bool)
        used = self._used(labels[allowed])
        place = np.maximum(np.cumsum(used, dtype=np.int32) - 1, 0)
        rank: IntArray = place[np.clip(labels, 0, used.size - 1)]
        values = np.flatnonzero(used)
        up, ramps_up = _ramps(rank, allowed, values.size)
        if ramps_up.all():
            return up, values
        down, ramps_down = _ramps(values.size - 1 - rank, allowed, values.size)
        more = np.count_nonzero(ramps_down) > np.count_nonzero(ramps_up)
        return (down, values[::-1]) if more else (up, values)

    def _used(self, labels: IntArray) -> BoolArray:
        size = self.labels.size
        if labels.size and not 0 <= labels.min() <= labels.max() < size:
            wrong = int(labels.min() if labels.min() < 0 else labels.max())
            raise InputError(
                f"`labels` must give labels from 0 to {size - 1}, but {self.labels!r} gives {wrong}. "
                "Clip the labels or raise `size`."
            )
        used = np.zeros(max(size, 1), bool)
        used[labels] = True
        return used


def _ramps(rank: IntArray, allowed: BoolArray, size: int) -> tuple[IntArray, BoolArray]:
    """The tiles, ramps wherever possible, and which of them are ramps."""
    start = rank - COLUMN
    low = np.where(allowed, start, TILE + size).min(axis=2)  # (A, 64, 64) -> (A, 64)
    high = np.where(allowed, start, -TILE - size).max(axis=2)
    used = low <= high
    ramp = np.all((low == high) | ~used, axis=1)
    # A row without allowed pairs continues from its neighbor, one rank lower for each row, as distances do.
    before = np.maximum.accumulate(np.where(used, COLUMN, -1), axis=1)
    source = np.where(before < 0, np.argmax(used, axis=1)[:, None], before)
    begin = np.clip(np.take_along_axis(low, source, axis=1) + source - COLUMN, -TILE, size)
    tiles = np.where(ramp[:, None, None], begin[:, :, None] + COLUMN, rank)
    return tiles.astype(np.int32, copy=False), ramp
