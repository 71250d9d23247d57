"""Tiles: the rows of a layout in lists of at most 64, and which query tiles may meet which key tiles."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from longspan.errors import FARTHEST
from longspan.layout import Site
from longspan.patterns.base import Reach, Spans
from longspan.shapes import BoolArray, IntArray

TILE = 64
COLUMN = np.arange(TILE, dtype=np.int32)
Bits: TypeAlias = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Tiles:
    """T tiles, each of one document and sorted by position.

    A tile is *even* if its positions are equally spaced. The sites of an even tile continue at that spacing
    after its last row, so that a short tile looks like a whole one; other tiles repeat their last row.
    """

    rows: IntArray
    "(T, 64) row numbers, -1 after the last."
    sites: Site
    "(T, 64)"
    size: IntArray
    "(T,) how many rows."
    even: BoolArray
    "(T,)"
    lane: IntArray
    "(T,) tiles of one lane follow each other in position."
    residue: IntArray
    "(T,) what all positions are modulo the step; -1 if they differ."

    def __len__(self) -> int:
        return self.size.size

    def __getitem__(self, tiles: IntArray | slice) -> "Tiles":
        return Tiles(*(getattr(self, column.name)[tiles] for column in fields(self)))

    @staticmethod
    def concat(parts: "list[Tiles]") -> "Tiles":
        """The tiles of all parts, one after the other."""
        sites = [part.sites for part in parts]
        tags = {name: np.concatenate([site.tags[name] for site in sites]) for name in sites[0].tags}
        joined = Site(**{name: _stack(sites, name) for name in _names(Site, but="tags")}, tags=tags)
        return Tiles(sites=joined, **{name: _stack(parts, name) for name in _names(Tiles, but="sites")})

    @cached_property
    def lo(self) -> IntArray:
        return self.sites.position[:, 0]

    @cached_property
    def hi(self) -> IntArray:
        return self.sites.position[np.arange(len(self)), self.size - 1]

    @cached_property
    def document(self) -> IntArray:
        return self.sites.document[:, 0]

    @cached_property
    def spacing(self) -> IntArray:
        return self.sites.position[:, 1] - self.lo

    @cached_property
    def shape(self) -> IntArray:
        """(T,) a number that even tiles of equal spacing, marks and `last` share; -1 for other tiles."""
        span = self.sites.last[:, 0] - self.lo
        same = distinct(self.spacing, span, pack(self.sites.marked))[1]
        return np.where(self.even, same, -1)

    def spans(self, tiles: IntArray) -> Spans:
        """What a pattern's reach may know about some query tiles."""
        size, site = self.size[tiles], self.sites
        marks = np.count_nonzero(site.marked[tiles] & (size[:, None] > COLUMN), axis=1)
        marked = marks == size
        return Spans(self.lo[tiles], self.hi[tiles], site.length[tiles, 0], marked, (marks > 0) & ~marked)


def query_tiles(site: Site, step: int, split: bool) -> Tiles:
    """Every row once, by document, residue and position: blocks of 64 * step rows, one tile for each residue.

    Rows that do not exist, and marked rows if `split`, are taken out into tiles of their own, by document.
    """
    rows, lane, block = _in_lanes(site, step)
    apart = ~site.exists | (site.marked & split)
    if apart.any():
        home = ~apart[rows]
        pieces = [(rows[home], lane[home], block[home])]
        pieces += [_gathered(site, np.flatnonzero(apart & (site.exists == there))) for there in (True, False)]
        pieces = [(rows, lane + (i << 48), block) for i, (rows, lane, block) in enumerate(pieces)]
        rows, lane, block = (np.concatenate(column) for column in zip(*pieces, strict=True))
    tiles = _cut(site, rows, lane, block, step)
    order = np.argsort(tiles.document, kind="stable")  # lane after lane: neighbors share key tiles
    return tiles if np.all(order[1:] > order[:-1]) else tiles[order]


def key_tiles(site: Site, step: int) -> Tiles:
    """The existing rows in blocks of 64 * step, one tile for each residue, lane by lane."""
    rows, lane, block = _in_lanes(site, step)
    there = site.exists[rows]
    return _cut(site, rows[there], lane[there], block[there], step)


def landmark_tiles(site: Site, landmarks: BoolArray) -> Tiles:
    """The landmarks that exist, gathered by document."""
    return _cut(site, *_gathered(site, np.flatnonzero(landmarks & site.exists)), step=1)


def candidates(
    q: Tiles, tiles: IntArray, k: Tiles, reach: Reach, step: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The (query tile, key tile) pairs, sorted, in which one of the query `tiles` may see some key."""
    new = changes(k.lane)
    opens, lane = np.flatnonzero(new), np.cumsum(new) - 1  # the first key tile of each lane; lanes numbered
    tile, interval = np.nonzero(reach.lo <= reach.hi)
    document = q.document[tiles[tile]]
    first_lane = np.searchsorted(k.document[opens], document)
    lanes = np.searchsorted(k.document[opens], document, side="right") - first_lane
    owner, seen = ragged(first_lane, lanes)
    if step > 1:  # a dilated interval meets the lane of its own residue only
        residue = np.where(reach.step[interval] == step, q.residue[tiles[tile]], -1)[owner]
        match = (residue < 0) | (residue == k.residue[opens][seen])
        owner, seen = owner[match], seen[match]
    lo, hi = reach.lo[tile, interval][owner], reach.hi[tile, interval][owner]
    begin = np.searchsorted(_place(lane, k.hi), _place(seen, np.clip(lo, 0, FARTHEST)))
    end = np.searchsorted(_place(lane, k.lo), _place(seen, np.clip(hi, -1, FARTHEST)), side="right")
    item, key = ragged(begin, np.maximum(end - begin, 0))
    pairs = np.sort(tiles[tile[owner[item]]] * len(k) + key)
    return np.divmod(pairs[changes(pairs)], max(len(k), 1))


def pack(flags: BoolArray) -> Bits:
    """(..., n) flags, n <= 64 -> (...) words; flag j is bit j."""
    octets = np.zeros((*flags.shape[:-1], 8), np.uint8)
    octets[..., : (flags.shape[-1] + 7) // 8] = np.packbits(flags, axis=-1, bitorder="little")
    return octets.view("<u8")[..., 0].astype(np.uint64, copy=False)


def low(count: IntArray) -> Bits:
    """Words whose lowest `count` bits are set, 0 < count <= 64."""
    return np.uint64(0xFFFF_FFFF_FFFF_FFFF) >> (TILE - count).astype(np.uint64)


def distinct(*columns: npt.NDArray[np.generic]) -> tuple[IntArray, IntArray]:
    """Number the distinct rows of some columns: where each first appears, and the number of every row."""
    order = np.lexsort(columns)
    new = changes(*(column[order] for column in columns))
    number = np.empty(order.size, np.int64)
    number[order] = np.cumsum(new) - 1
    return order[new], number


def changes(*columns: npt.NDArray[np.generic]) -> BoolArray:
    """Where a row of some columns differs from the row before it; the first always does."""
    new = np.ones(columns[0].size, bool)
    new[1:] = columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        new[1:] |= column[1:] != column[:-1]
    return new


def ragged(start: IntArray, count: IntArray) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The ranges start[i] .. start[i] + count[i] laid end to end: their owners i and their values.

    >>> [column.tolist() for column in ragged(np.array([5, 9]), np.array([2, 1]))]
    [[0, 0, 1], [5, 6, 9]]
    """
    owner = np.repeat(np.arange(count.size), count)
    offset = start - (np.cumsum(count) - count)
    return owner, np.arange(owner.size) + offset[owner]


def _names(cls: type[Tiles] | type[Site], but: str) -> list[str]:
    return [column.name for column in fields(cls) if column.name != but]


def _stack(parts: Sequence[object], name: str) -> npt.NDArray[Any]:
    return np.concatenate([getattr(part, name) for part in parts])


def _place(lane: IntArray, position: IntArray) -> npt.NDArray[np.int64]:
    """One number that sorts by lane, then by position (which may be -1)."""
    return (lane.astype(np.int64) << 32) + position


def _rank(lane: IntArray) -> IntArray:
    """How many of the same lane come before, in a list sorted by lane."""
    start = np.flatnonzero(changes(lane))
    return np.arange(lane.size) - np.repeat(start, np.diff(start, append=lane.size))


def _in_lanes(site: Site, step: int) -> tuple[IntArray, IntArray, IntArray]:
    """All rows by lane and position; their lanes; their blocks of 64 in the lane.

    A lane is a document and a residue. Rows at the position of another row (as in joined layouts) form lanes
    of their own, or they would thin out the tiles of a plain document.
    """
    place, lane = _place(site.document, site.position), site.document.astype(np.int64)
    rows, ordered = np.arange(lane.size), np.all(place[1:] > place[:-1])
    if not ordered:
        rows = np.argsort(place, kind="stable")
        repeated = np.zeros(lane.size, bool)
        repeated[rows[1:]] = place[rows[1:]] == place[rows[:-1]]
        lane = lane * 2 + repeated
    lane = lane * step + site.position % step
    if step > 1 or not ordered:
        rows = rows[np.argsort(lane[rows], kind="stable")]
    return rows, lane[rows], _rank(lane[rows]) // TILE


def _gathered(site: Site, rows: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Some rows by document and position, their documents as lanes, their blocks of 64."""
    rows = rows[np.argsort(_place(site.document, site.position)[rows], kind="stable")]
    lane = site.document[rows].astype(np.int64)
    return rows, lane, _rank(lane) // TILE


def _cut(site: Site, rows: IntArray, lane: IntArray, block: IntArray, step: int) -> Tiles:
    """One tile for each run of equal lane and block; its rows agree in document and in whether they exist."""
    start = np.flatnonzero(changes(lane, block))
    size = np.diff(start, append=rows.size)
    index = np.minimum(COLUMN, (size[:, None] - 1).astype(np.int32))  # (T, 64)
    inside, row, first = index == COLUMN, rows[start[:, None] + index], rows[start]
    position, lo = site.position[row], site.position[first, None]
    spacing = np.where(size > 1, position[:, 1] - lo[:, 0], step).astype(np.int32)[:, None]
    ahead = site.last[row] - position
    even = np.all((position == lo + spacing * index) & (ahead == ahead[:, :1]), axis=1)
    alike = np.all(position % step == lo % step, axis=1) if step > 1 else np.True_
    residue = np.where(alike, lo[:, 0] % step, -1)
    position = np.where(even[:, None], lo + spacing * COLUMN, position)
    document = np.broadcast_to(site.document[first, None], row.shape)
    length = np.broadcast_to(site.length[first, None], row.shape)
    exists = np.broadcast_to(site.exists[first, None], row.shape)
    tags = {name: tag[row] for name, tag in site.tags.items()}
    sites = Site(position, position + ahead, document, length, site.marked[row] & inside, exists, tags)
    return Tiles(np.where(inside, row, -1).astype(np.int32), sites, size, even, lane[start], residue)
