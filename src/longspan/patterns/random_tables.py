"""Which random blocks rows draw: the published samplers, bit for bit, and one of our own.

Every function gives block numbers, one row per query block, -1 where a row draws fewer. Rows 0 and the last
see everything anyway, so what stands there is not used. All tables are cached and must not be written to.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Table = npt.NDArray[np.int32]
_PAPER_POOL = 1024  # tokens; the released samplers never draw beyond them
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@lru_cache(maxsize=64)
def paper_table(blocks: int, block: int, count: int, seed: int, heads: int) -> Table:
    """Plan A, `_bigbird_block_rand_mask`: (H, blocks, count), each head in turn from one stream."""
    stream = np.random.RandomState(seed)
    pool = np.arange(1, blocks - 1)
    last = _PAPER_POOL // block - 1 if 2 * block < _PAPER_POOL else blocks - 1
    table = np.full((heads, blocks, count), -1, np.int32)
    for head in range(heads):
        for row in range(1, blocks - 1):
            if row in (1, 2):
                candidates = pool[row + 1 : last]
            elif row >= blocks - 3 or row - 2 > last:
                candidates = pool[:last]
            elif row + 1 == last:
                candidates = pool[: row - 2]
            else:
                candidates = np.concatenate((pool[: row - 2], pool[row + 1 : last]))
            picks = stream.permutation(candidates)[:count]
            table[head, row, : picks.size] = picks
    table.setflags(write=False)
    return table


def general_table(blocks: int, count: int, seed: int, heads: int) -> Table:
    """Plan B, `_bigbird_block_rand_mask_with_head`: (H, blocks, count), rows outer, heads inner."""
    if blocks > 2 * count + 5:  # a longer document's table begins with a shorter one's: share it
        return _general_table(1 << (blocks - 1).bit_length(), count, seed, heads)[:, :blocks]
    return _general_table(blocks, count, seed, heads)


@lru_cache(maxsize=64)
def _general_table(blocks: int, count: int, seed: int, heads: int) -> Table:
    stream = np.random.RandomState(seed)
    table = np.full((heads, blocks, count), -1, np.int32)
    ends, shares = _segments(blocks, count)

    def draw(rows: range, segment: int) -> None:
        first, end = (0, *ends)[segment], ends[segment]
        slot, share = sum(shares[:segment]), shares[segment]
        for row in rows if share else ():
            for head in range(heads):
                order = stream.permutation(np.arange(first, end))
                picks = [block for block in order if block not in _banned(row, end)][:share]
                table[head, row, slot : slot + len(picks)] = picks

    for segment, end in enumerate(ends):
        start = ends[segment - 1] if segment else 1
        if segment:
            draw(range(1, start), segment)
        for earlier in range(segment):
            draw(range(start, end), earlier)
        draw(range(start, end), segment)
    table.setflags(write=False)
    return table


def _segments(blocks: int, count: int) -> tuple[list[int], list[int]]:
    """Where plan B cuts a document, in blocks, and how many picks fall on each piece."""
    if blocks > 2 * count + 5:
        return [2 * count + 5, blocks], [count, 0]
    if blocks > count + 5:
        return [count + 5, blocks], [count // 2, count - count // 2]
    return [blocks], [count]


def _banned(row: int, end: int) -> set[int]:
    """Window and global blocks; the second row and the last but one also keep off each other's corner."""
    banned = {0, end - 1, row - 1, row, row + 1}
    if row == 1:
        banned.add(end - 2)
    if row == end - 2:
        banned.add(1)
    return banned


@lru_cache(maxsize=1024)
def uniform_table(blocks: int, count: int, seed: int, head: int) -> Table:
    """(blocks, count): distinct blocks drawn evenly from all that are neither global nor in the window.

    Floyd's sampling on a counter-based hash of (seed, head, blocks, row, pick), all rows at once.
    """
    row = np.arange(blocks)
    banned = np.stack([np.zeros_like(row), row - 1, row, row + 1, np.full_like(row, blocks - 1)], axis=1)
    banned.sort(axis=1)
    banned[:, 1:][np.diff(banned) == 0] = blocks  # a block banned twice counts once
    banned.sort(axis=1)
    free = blocks - np.count_nonzero((banned >= 0) & (banned < blocks), axis=1)
    key = _mixed(_mixed(_mixed(np.uint64(seed % 2**64)) + np.uint64(head)) + np.uint64(blocks))
    table = np.full((blocks, count), -1, np.int32)
    for pick in range(count):
        top = free - np.minimum(free, count) + pick
        word = _mixed(key + _GOLDEN * (row * count + pick + 1).astype(np.uint64))
        drawn = ((word >> np.uint64(32)) * (top + 1).astype(np.uint64) >> np.uint64(32)).astype(np.int64)
        taken = np.any(table[:, :pick] == drawn[:, None], axis=1)
        table[:, pick] = np.where(pick < free, np.where(taken, top, drawn), -1)
    for column in range(banned.shape[1]):
        skipped = banned[:, column, None]
        table += (table >= 0) & (skipped >= 0) & (table >= skipped)
    table.setflags(write=False)
    return table


def _mixed(x: npt.NDArray[np.uint64] | np.uint64) -> npt.NDArray[np.uint64]:
    """splitmix64's finalizer: every input bit reaches every output bit."""
    x = np.atleast_1d(x)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
