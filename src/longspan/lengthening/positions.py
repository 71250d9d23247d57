"""A longer table of positions from a short one."""

import torch
from torch import Tensor

from longspan.errors import bad, whole

METHODS = ("copy", "interpolate", "random")


def stretched(
    rows: Tensor, to: int, method: str = "copy", *, period: int | None = None, std: float = 0.02
) -> Tensor:
    """`to` rows from the rows (P, C) of a short model.

    "copy" repeats the first `period` rows, all of them by default (Longformer, section 5); "interpolate"
    stretches the table linearly, ends on ends; "random" draws the rows beyond P, for the ablation.

    >>> stretched(torch.tensor([[0.0], [1.0], [2.0]]), 5).flatten()
    tensor([0., 1., 2., 0., 1.])
    >>> stretched(torch.tensor([[0.0], [1.0], [2.0]]), 5, "interpolate").flatten()
    tensor([0.0000, 0.5000, 1.0000, 1.5000, 2.0000])
    """
    known = len(rows)
    if method not in METHODS:
        raise bad("positions", f"one of {', '.join(METHODS)}", method)
    whole("to", to, known, "A model is never made shorter: give at least the length that it has.")
    if period is not None:
        if method != "copy":
            raise bad("period", "None unless positions are copied", period)
        whole("period", period, 1, most=known)
    if method == "copy":
        return rows[torch.arange(to) % (period or known)]
    if method == "random":
        drawn = torch.randn(to - known, rows.shape[1], generator=torch.Generator().manual_seed(0)) * std
        return torch.cat([rows, drawn.to(rows.dtype)])
    place = torch.arange(to, dtype=torch.float64) * (known - 1) / max(to - 1, 1)
    below = place.floor().long()
    above = (below + 1).clamp(max=known - 1)
    share = (place - below).unsqueeze(1)
    return ((1 - share) * rows[below].double() + share * rows[above].double()).to(rows.dtype)
