"""What losses over packed documents share."""

import torch
from torch import Tensor


def group_logsumexp(values: Tensor, group: Tensor, groups: int) -> Tensor:
    """log(sum(exp)) over the rows of each group: (N, K), (N,) -> (groups, K); -inf for an empty group.

    >>> group_logsumexp(torch.zeros(5, 1), torch.tensor([0, 0, 0, 1, 1]), 2).exp().flatten()
    tensor([3., 2.])
    """
    values = values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
    spread = group.unsqueeze(1).expand_as(values)
    floor = values.new_full((groups, values.shape[1]), -torch.inf)
    most = floor.scatter_reduce(0, spread, values.detach(), "amax")
    most = torch.where(most.isfinite(), most, torch.zeros_like(most))
    total = torch.zeros_like(floor).index_add(0, group, (values - most[group]).exp())
    # An empty group has no gradient: the log of 0 is put in afterwards, not differentiated.
    return torch.where(total > 0, total.clamp_min(torch.finfo(total.dtype).tiny).log() + most, floor)


def mean(losses: Tensor) -> Tensor:
    """The mean, and 0 where there is nothing to average (with a gradient of 0)."""
    return losses.sum() / max(losses.numel(), 1)
