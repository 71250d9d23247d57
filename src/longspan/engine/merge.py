"""Merges attention over separate key sets into attention over all of them."""

import torch
from torch import Tensor

from longspan.errors import InputError, bad


def merge(*parts: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """One softmax over the keys of all parts: pairs of out (..., D) and lse (...) to one; differentiable.

    A row that saw nothing in a part (lse -inf) takes nothing from it; a row that saw nothing at all is 0.

    >>> seen, empty = (torch.ones(1, 2), torch.zeros(1)), (torch.zeros(1, 2), torch.full((1,), -torch.inf))
    >>> merge(seen, empty, seen)
    (tensor([[1., 1.]]), tensor([0.6931]))
    """
    _check(parts)
    lse = torch.stack([part[1] for part in parts])  # P parts: (...) -> (P, ...)
    peak = lse.detach().amax(0)
    peak = peak.masked_fill(peak == -torch.inf, 0)
    weight = (lse - peak).exp()
    total = weight.sum(0)
    empty = total == 0
    total = total.masked_fill(empty, 1)
    weight = weight / total
    out = sum(w.unsqueeze(-1) * part[0] for w, part in zip(weight, parts, strict=True))
    return torch.as_tensor(out).to(parts[0][0].dtype), (peak + total.log()).masked_fill(empty, -torch.inf)


def _check(parts: tuple[tuple[Tensor, Tensor], ...]) -> None:
    if not parts:
        raise InputError("`merge` must be given at least one (out, lse) pair, but got none.")
    shape = parts[0][0].shape
    for number, (out, lse) in enumerate(parts):
        if out.shape != shape:
            raise bad(f"parts[{number}]", f"of shape {tuple(shape)} like the first", tuple(out.shape))
        if lse.shape != shape[:-1]:
            raise bad(f"parts[{number}]", f"a pair with lse of shape {tuple(shape[:-1])}", tuple(lse.shape))
