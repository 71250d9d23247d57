"""Row-wise work in pieces: what a layer does between two attentions needs no more memory than a few rows."""

from collections.abc import Callable

import torch
from torch import Tensor

from longspan.native import in_a_graph

ROWS = 1024
"""Few enough that the intermediates of a piece stay in the cache, many enough for full matrix speed."""


def writes_over() -> bool:
    """Whether memory may be written over, as nothing is differentiated, and no graph is traced."""
    return not torch.is_grad_enabled() and not in_a_graph()


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
