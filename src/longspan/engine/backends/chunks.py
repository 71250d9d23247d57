"""Which query tiles `tiled` computes together: like numbers of entries, and scores that stay in the cache."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from longspan.shapes import BoolArray, IntArray

SEGMENT = 64  # entries of one query tile computed at once; longer rows are merged by log-sum-exp
SCORES = 2**21  # scores of one chunk: 8 MB of float32
PADDING = 0.25  # at most this part of a chunk's entries is padding


class Chunk(NamedTuple):
    """Query tiles with their entries, padded in front; then those that need a mask, then those that need none."""

    tiles: Tensor  # (T,) query tiles
    entries: Tensor  # (T, E) entry numbers, -1 for padding
    masked: int  # entries from this column on need no mask
    first: bool  # the tiles' first segment, to be stored; later ones are merged into it


def chunks(entries: IntArray, start: IntArray, whole: BoolArray, heads: int) -> list[Chunk]:
    """Cuts the work of `heads` heads; query tile t owns entries start[t] to start[t + 1], `whole[k]`: tile k is full."""
    if not len(entries):
        return []
    tile = np.repeat(np.arange(len(start) - 1), np.diff(start))
    plain = (entries[:, 1] == -1) & whole[entries[:, 0]]
    order = np.lexsort((plain, tile))
    rank = np.arange(len(entries)) - start[tile]
    unit = np.flatnonzero(rank % SEGMENT == 0)  # a unit is one segment of one tile
    size = np.diff(unit, append=len(entries))
    masked = np.add.reduceat(~plain[order], unit, dtype=np.int64)
    segment = rank[unit] // SEGMENT
    queue = np.lexsort((-masked, -size, segment))
    found, at = [], 0
    while at < len(queue):
        widest = size[queue[at]]
        room = max(1, SCORES // (heads * 64 * 64 * widest))
        members = queue[at : at + room]
        alike = (segment[members] == segment[members[0]]) & (size[members] >= widest * (1 - PADDING))
        members = members[: np.argmin(alike) if not alike.all() else None]
        column = np.arange(widest) - (widest - size[members])[:, None]  # (T, E), negative where padded
        number = np.where(column >= 0, order[unit[members][:, None] + np.maximum(column, 0)], -1)
        first_plain = int((widest - size[members] + masked[members]).max())
        is_first = bool(segment[members[0]] == 0)
        found.append(Chunk(torch.tensor(tile[unit[members]]), torch.tensor(number), first_plain, is_first))
        at += len(members)
    return found
