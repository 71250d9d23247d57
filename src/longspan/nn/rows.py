"""Row-wise work in pieces: what a layer does between two attentions needs no more memory than a few rows."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from longspan.native import in_a_graph

ROWS = 1024
"""Few enough that the intermediates of a piece stay in the cache, many enough for full matrix speed."""


class Scratch(NamedTuple):
    """Memory that layers write over, one after another, where nothing is differentiated.

    Fresh memory is slow, and what is given back between layers leaves holes that the next does not fit in.
    """

    projected: Tensor
    "(N, 3C) queries, keys and values."
    context: Tensor
    "(N, C): what goes into the attention, what comes out of it, and then the layer's result."

    def for_heads(self, heads: int, columns: int) -> Tensor | None:
        """The context as heads, (N, H, D), if it has so many columns."""
        fits = self.context.shape[1] == columns
        return self.context.view(len(self.context), heads, -1) if fits else None


def projected(scratch: Scratch | None) -> Tensor | None:
    """Where queries, keys and values are written."""
    return None if scratch is None else scratch.projected


def writes_over() -> bool:
    """Whether memory may be written over, as nothing is differentiated, and no graph is traced."""
    return not torch.is_grad_enabled() and not in_a_graph()


def apart(x: Tensor, context: Tensor, room: Tensor | None) -> Tensor:
    """Memory for a result like x (N, C) that must not be that of the context, in `room` if that is free."""
    free = room is not None and room.data_ptr() != context.data_ptr()
    return room if room is not None and free else torch.empty_like(x)


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
