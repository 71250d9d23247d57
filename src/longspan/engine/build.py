"""Builds plans: classes of heads, groups of documents, tiles, entries; linear in the number of entries."""

from functools import cache, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longspan.engine import tiling
from longspan.engine.hints import advise
from longspan.engine.labels import Labels, LabelTiles
from longspan.engine.masks import Pairs, Pool, entries
from longspan.engine.tiling import COLUMN, TILE, Tiles, low, pack, ragged
from longspan.layout import Layout
from longspan.patterns.base import Pattern, Reach
from longspan.shapes import IntArray

Arrays = dict[str, npt.NDArray[np.generic]]


def build(pattern: Pattern, queries: Layout, keys: Layout, heads: int, labels: Labels | None) -> Arrays:
    """The arrays of a plan by name; `PlanArrays` says what they mean."""
    classes: dict[Pattern, int] = {}
    head_class = [classes.setdefault(pattern.head(h), len(classes)) for h in range(heads)]
    builder = _Builder(queries, keys, labels)
    for head_pattern in classes:
        builder.add_class(head_pattern)
    return {"head_class": np.asarray(head_class), **builder.arrays()}


class _Keys(NamedTuple):
    """The key tiles that a group of documents may meet."""

    tiles: Tiles
    "Ordinary tiles, then landmark tiles."
    ordinary: Tiles
    landmarks: Tiles
    number: IntArray
    "(T,) the number of each tile in the builder's list."


class _Class(NamedTuple):
    """One class of heads."""

    rows: IntArray
    "(QT, 64)"
    entries: IntArray
    "(5, E): query tile, key tile, mask, multiplicity, label tile."
    label_list: IntArray


class _Builder:
    """Collects classes; what they share (tiles, masks, label tiles) is built once."""

    def __init__(self, queries: Layout, keys: Layout, labels: Labels | None) -> None:
        self.queries, self.keys, self.labels = queries, keys, labels
        self.masks, self.label_tiles = Pool(), Pool()
        self.k_rows: list[IntArray] = []
        self.classes: list[_Class] = []
        self.query_tiles = cache(partial(tiling.query_tiles, queries.sites))
        self.key_tiles = cache(self._key_tiles)

    def add_class(self, pattern: Pattern) -> None:
        """The tiles and entries of the heads that share this pattern."""
        groups: dict[Pattern, int] = {}
        lengths, which = np.unique(self.queries.lengths, return_inverse=True)
        numbers = [groups.setdefault(pattern.at(length), len(groups)) for length in lengths.tolist()]
        group = np.asarray(numbers, np.int64)[which]
        labelled = None if self.labels is None else LabelTiles(self.labels)
        tiles: list[Tiles] = []
        parts = [np.zeros((6, 0), np.int64)]
        for number, group_pattern in enumerate(groups):
            q = self.query_tiles(max(group_pattern.step, 1), group_pattern.splits_marked)
            members = np.flatnonzero(group[q.document] == number)
            columns = self._entries(group_pattern, q, members, labelled)
            columns[0] = np.searchsorted(members, columns[0]) + sum(map(len, tiles))
            tiles.append(q if members.size == len(q) else q[members])
            parts.append(columns)
        rows, place = _in_order(tiles)
        columns = np.concatenate(parts, axis=1)
        columns[0] = place[columns[0]]
        label_list = np.zeros(0, np.int64) if labelled is None else self._rank(labelled, columns)
        self.classes.append(_Class(rows, _nearest_first(columns), label_list))

    def arrays(self) -> Arrays:
        """Everything collected, by name."""
        q_rows = [c.rows for c in self.classes]
        class_start = _offsets([len(rows) for rows in q_rows])
        columns = np.concatenate([c.entries for c in self.classes], axis=1)
        tile = columns[0] + np.repeat(class_start[:-1], [c.entries.shape[1] for c in self.classes])
        used = np.bincount(columns[1], minlength=sum(map(len, self.k_rows))) > 0
        columns[1] = (np.cumsum(used) - 1)[columns[1]]
        label_tiles = self.label_tiles.array(np.int32, TILE, TILE)
        lists = [c.label_list for c in self.classes]
        sites = self.queries.sites
        return {
            "class_start": class_start,
            "q_rows": np.concatenate(q_rows),
            "k_rows": np.concatenate([np.zeros((0, TILE), np.int32), *self.k_rows])[used],
            "entry_start": _offsets(np.bincount(tile, minlength=class_start[-1])),
            "entries": columns[1:].T,
            "masks": self.masks.array(np.int64, TILE),
            "label_tiles": label_tiles,
            "label_kind": np.all(label_tiles - COLUMN == label_tiles[:, :, :1], axis=(1, 2)),
            "label_start": _offsets([labels.size for labels in lists]),
            "label_list": np.concatenate(lists),
            "q_sites": np.stack([sites.document, sites.position], axis=1),
            "k_positions": self.keys.sites.position,
        }

    def _entries(self, pattern: Pattern, q: Tiles, tiles: IntArray, labelled: LabelTiles | None) -> IntArray:
        """(6, E): query tile, key tile, mask, multiplicity, label tile, distance between the tiles."""
        keys = self._keys(pattern)
        tiles = tiles[q.sites.exists[tiles, 0]]
        if not tiles.size or not len(keys.ordinary):
            return np.zeros((6, 0), np.int64)
        reach = pattern.reach(q.spans(tiles))
        pairs = _pairs(q, tiles, keys, reach, max(pattern.step, 1))
        advise(pattern, self.queries.sites, self.keys.sites, pairs.q.size)
        pair, mask, times = entries(pattern, q, keys.tiles, pairs, self.masks)
        pairs = Pairs(*(column[pair] for column in pairs))
        label = np.full(pair.size, -1)
        if labelled is not None:
            real = np.where(q.size[pairs.q, None] > COLUMN, pairs.keep[:, None], np.uint64(0))
            bits = np.append(self.masks.array(np.uint64, TILE), np.zeros((1, TILE), np.uint64), axis=0)[mask]
            label = labelled.add(q, keys.tiles, pairs, np.where(mask[:, None] < 0, real, bits))
        distance = np.abs(keys.tiles.lo[pairs.k] - q.lo[pairs.q])
        return np.stack([pairs.q, keys.number[pairs.k], mask, times, label, distance])

    def _keys(self, pattern: Pattern) -> _Keys:
        landmarks = pattern.landmarks(self.keys.sites) & self.keys.sites.exists
        ordinary, number = self.key_tiles(max(pattern.step, 1), None)
        if not landmarks.any():
            return _Keys(ordinary, ordinary, ordinary[:0], number)
        far, far_number = self.key_tiles(1, landmarks.tobytes())
        return _Keys(Tiles.concat([ordinary, far]), ordinary, far, np.append(number, far_number))

    def _key_tiles(self, step: int, landmarks: bytes | None) -> tuple[Tiles, IntArray]:
        """Ordinary tiles, or those of landmarks (the bytes of an array of flags), and their numbers."""
        site = self.keys.sites
        if landmarks is None:
            tiles = tiling.key_tiles(site, step)
        else:
            tiles = tiling.landmark_tiles(site, np.frombuffer(landmarks, bool))
        self.k_rows.append(tiles.rows)
        last = sum(map(len, self.k_rows))
        return tiles, np.arange(last - len(tiles), last)

    def _rank(self, labelled: LabelTiles, columns: IntArray) -> IntArray:
        """Add a class's label tiles to the plan's; the list of labels that the class uses."""
        tiles, values = labelled.ranked()
        columns[4] = self.label_tiles.add(tiles)[columns[4]]
        return values


def _pairs(q: Tiles, tiles: IntArray, keys: _Keys, reach: Reach, step: int) -> Pairs:
    """The pairs of tiles to evaluate; a key that an ordinary pair holds is not kept in a landmark pair."""
    tile, key = tiling.candidates(q, tiles, keys.ordinary, reach, step)
    pairs = Pairs(tile, key, low(keys.ordinary.size[key]))
    if not len(keys.landmarks):
        return pairs
    seeing, far, count = tiles[reach.landmarks], keys.landmarks, len(keys.ordinary)
    begin, end = (np.searchsorted(far.document, q.document[seeing], side=side) for side in ("left", "right"))
    owner, landmark = ragged(begin, end - begin)
    rows = far.rows[landmark, : far.size.max()]  # (P, widest)
    home = np.zeros(keys.ordinary.rows.max() + 2, np.int64)  # each key's tile; padding finds the last
    home[keys.ordinary.rows] = np.arange(count)[:, None]
    ordinary, sought = tile * count + key, seeing[owner, None] * count + home[rows]
    held = np.append(ordinary, -1)[np.searchsorted(ordinary, sought)] == sought
    keep = pack((rows >= 0) & ~held)
    left = keep > 0
    far_pairs = seeing[owner[left]], landmark[left] + count, keep[left]
    return Pairs(*(np.concatenate(column) for column in zip(pairs, far_pairs, strict=True)))


def _in_order(tiles: list[Tiles]) -> tuple[IntArray, IntArray]:
    """The rows of all tiles by document, and the new place of each tile."""
    if len(tiles) == 1:
        return tiles[0].rows, np.arange(len(tiles[0]))
    document = np.concatenate([np.zeros(0, np.int32), *(t.document for t in tiles)])
    order = np.argsort(document, kind="stable")
    rows = np.concatenate([np.zeros((0, TILE), np.int32), *(t.rows for t in tiles)])[order]
    return rows, np.argsort(order)


def _nearest_first(columns: IntArray) -> IntArray:
    """(6, E) -> (5, E) sorted by query tile; in each the nearest key tile first, then by key tile."""
    tile, key, *_, distance = columns
    tiles, keys = tile.max(initial=0) + 1, key.max(initial=0) + 1
    nearest = np.full(tiles, np.iinfo(np.int64).max)
    np.minimum.at(nearest, tile, distance * keys + key)
    order = np.argsort((tile * 2 + (nearest[tile] % keys != key)) * keys + key, kind="stable")
    return columns[:5, order]


def _offsets(counts: npt.ArrayLike) -> IntArray:
    """Where each list begins when all are laid end to end, and where the last one ends."""
    return np.append(0, np.cumsum(counts, dtype=np.int64))
