"""Row-wise work in pieces: what a layer does between two attentions needs no more memory than a few rows."""

import mmap
from collections.abc import Callable
from math import prod

import torch
from torch import Tensor

from longspan.native import in_a_graph, reads

ROWS = 512
"""Few enough that the intermediates of a piece stay in the cache, many enough for full matrix speed."""


PAGE = 1024
"""Floats. Rows a multiple of a page apart fall on the same few lines of the cache, and are read slowly."""
PAGES = 8 << 20
"""Bytes that are worth pages of their own."""


def own_pages(like: Tensor, *shape: int) -> Tensor:
    """An empty tensor in pages that go back to the system with it.

    malloc keeps what is freed between two blocks that are not: after some layers half of its memory is holes.
    """
    size = prod(shape) * like.element_size()
    if not reads(like.detach()) or size < PAGES or not hasattr(mmap, "MAP_ANONYMOUS"):
        return like.new_empty(shape)
    try:
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:  # there are none left: torch knows how to say so
        return like.new_empty(shape)
    return torch.frombuffer(pages, dtype=like.dtype).view(shape)


class Scratch:
    """Memory that the layers of a stack write over, one after another, where nothing is differentiated."""

    def __init__(self, projected: Tensor, context: Tensor) -> None:
        self.projected = projected
        "(N, 3C) queries, keys and values, or (N, 2 G * D) keys and values."
        self.context = context
        """(N, C): what goes into the attention, what comes out of it, and then the layer's result. Where it
        is x itself, `projected` holds keys and values alone, and the layer goes on by pieces of rows."""
        self._pieces: dict[str, Tensor] = {}

    def for_heads(self, heads: int, columns: int) -> Tensor | None:
        """The context as heads, (N, H, D), if it has so many columns."""
        fits = self.context.shape[1] == columns
        return self.context.view(len(self.context), heads, columns // heads) if fits else None

    def piece(self, name: str, rows: int, columns: int, *, dense: bool = False) -> Tensor:
        """Memory for some of the rows of what has a name: the same for every layer."""
        known = self._pieces.get(name)
        if known is None or known.shape[1] != columns or len(known) < rows:
            apart = 16 * (columns % PAGE == 0 and not dense)
            most = max(rows, min(ROWS, len(self.context)))
            known = self.context.new_empty(most, columns + apart)[:, :columns]
            self._pieces[name] = known
        return known[:rows]


def projected(scratch: Scratch | None) -> Tensor | None:
    """Where queries, keys and values are written."""
    return None if scratch is None else scratch.projected


def writes_over() -> bool:
    """Whether memory may be written over, as nothing is differentiated, and no graph is traced."""
    return not torch.is_grad_enabled() and not in_a_graph()


def share(x: Tensor, y: Tensor) -> bool:
    """Whether two tensors are parts of one piece of memory; those without any have pieces, too."""
    return bool(x.untyped_storage()._cdata == y.untyped_storage()._cdata)


def apart(x: Tensor, context: Tensor, room: Tensor | None) -> Tensor:
    """Memory for a result like x (N, C) that must not be that of the context, in `room` if that is free."""
    return torch.empty_like(x) if room is None or share(room, context) else room


def by_rows(step: Callable[..., Tensor], *columns: Tensor) -> Tensor:
    """step(*columns, into=None), a function of each row alone, with rows like those of the last column.

    Where nothing is differentiated it works in pieces of ROWS rows, and `into` is the piece of the last
    column, which the step ends by writing over; the caller must not need it any more.

    >>> by_rows(lambda x, y, into: torch.add(x, y, out=into), torch.ones(3, 2), torch.ones(3, 2)).sum()
    tensor(12.)
    """
    if not writes_over():
        return step(*columns, into=None)
    result = columns[-1]
    for start in range(0, len(result), ROWS):
        pieces = [column[start : start + ROWS] for column in columns]
        step(*pieces, into=pieces[-1])
    return result
