"""ALiBi: scores fall with the distance, in each head at its own rate (Press et al. 2022)."""

import torch
from torch import Tensor


def slopes(heads: int) -> tuple[float, ...]:
    """How much a score falls from a token to the next in each head: powers of one number, largest first.

    Where the heads are no power of two, more follow: every second of those that twice as many would have.

    >>> slopes(4)
    (0.25, 0.0625, 0.015625, 0.00390625)
    >>> [round(slope, 4) for slope in slopes(3)]
    [0.0625, 0.0039, 0.25]
    """
    whole = 1 << (heads.bit_length() - 1)
    first = [2.0 ** (-8 * (head + 1) / whole) for head in range(whole)]
    return (*first, *(2.0 ** (-4 * (2 * more + 1) / whole) for more in range(heads - whole)))


def scores(heads: int, reach: int) -> Tensor:
    """What is added to the scores of keys from `reach` before to `reach` behind a query, (2 reach + 1, H).

    >>> scores(1, 2)[:, 0] * 256
    tensor([-2., -1., -0., -1., -2.], dtype=torch.float64)
    """
    distance = torch.arange(-reach, reach + 1, dtype=torch.float64, device="cpu").abs()
    return -distance.unsqueeze(1) * torch.tensor(slopes(heads), dtype=torch.float64, device="cpu")
