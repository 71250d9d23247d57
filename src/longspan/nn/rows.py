"""Row-wise work in pieces: what a layer does between two attentions needs no more memory than a few rows."""

from collections.abc import Callable

import torch
from torch import Tensor

ROWS = 1024
"""Few enough that the intermediates of a piece stay in the cache, many enough for full matrix speed."""


def writes_over() -> bool:
    """Whether memory may be written over, as nothing is differentiated, and no graph is traced."""
    return not torch.is_grad_enabled() and not torch.compiler.is_compiling()


def by_rows(step: Callable[..., Tensor], *columns: Tensor) -> Tensor:
    """step(*columns), a function of each row alone, which gives rows like those of the last column.

    Where nothing is differentiated it works in pieces of ROWS rows and writes over the last column, which the
    caller must not need any more.

    >>> by_rows(lambda x, y: x + y, torch.ones(3, 2), torch.ones(3, 2)).sum()
    tensor(12.)
    """
    if not writes_over():
        return step(*columns)
    result = columns[-1]
    for start in range(0, len(result), ROWS):
        piece = slice(start, start + ROWS)
        result[piece] = step(*(column[piece] for column in columns))
    return result
