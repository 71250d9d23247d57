"""Which query tiles `tiled` computes together: like numbers of entries, and scores that stay in the cache."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

SEGMENT = 64  # entries of one query tile computed at once; longer lists are merged by log-sum-exp
SCORES = 2**21  # scores of one chunk: 8 MB of float32
PADDING = 0.25  # at most this fraction of a chunk's entries is padding


class Chunk(NamedTuple):
    """Query tiles with their entries: padding first, then those that need a mask, then the others."""

    tiles: Tensor  # (T,) query tiles
    entries: Tensor  # (T, E) entry numbers, -1 for padding
    masked: int  # entries from this column on need no mask
    first: bool  # the tiles' first segment, to be stored; later ones are merged into it


def chunks(entries: Tensor, start: Tensor, whole: Tensor, heads: int) -> list[Chunk]:
    """Cuts the work of some heads; query tile t owns entries start[t] to start[t + 1]."""
    key, mask = entries[:, :2].cpu().numpy().T
    first_entry, full = start.cpu().numpy(), whole.cpu().numpy()
    tile = np.repeat(np.arange(len(first_entry) - 1), np.diff(first_entry))
    plain = (mask == -1) & full[key]
    order = np.lexsort((plain, tile))
    rank = np.arange(len(tile)) - first_entry[tile]
    unit = np.flatnonzero(rank % SEGMENT == 0)  # a unit is one segment of one tile
    size = np.diff(unit, append=len(tile))
    masked = np.diff(np.append(0, np.cumsum(~plain[order]))[np.append(unit, len(tile))])
    segment = rank[unit] // SEGMENT
    queue = np.lexsort((-masked, -size, segment))
    parts, at = [], 0
    while at < len(queue):
        widest = size[queue[at]]
        members = queue[at : at + max(1, SCORES // (heads * 64 * 64 * widest))]
        alike = (segment[members] == segment[members[0]]) & (size[members] >= widest * (1 - PADDING))
        members = members[: np.count_nonzero(np.logical_and.accumulate(alike))]
        blank = widest - size[members]
        column = np.arange(widest) - blank[:, None]  # (T, E), negative where padded
        number = np.where(column >= 0, order[unit[members][:, None] + np.maximum(column, 0)], -1)
        tiles, numbers = (torch.tensor(x, device=entries.device) for x in (tile[unit[members]], number))
        first_plain = int((blank + masked[members]).max())
        parts.append(Chunk(tiles, numbers, first_plain, first=bool(segment[members[0]] == 0)))
        at += len(members)
    return parts
