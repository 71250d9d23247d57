"""What losses over packed documents share."""

from typing import NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.errors import bad, no_tensor
from longspan.nn.chunked_cross_entropy import IGNORE_INDEX
from longspan.pipeline.packing import Batch

T = TypeVar("T")


class Loss(NamedTuple):
    """The loss of a batch as a sum, and its weight: a step divides by the weights of all its batches."""

    total: Tensor
    "The sum over tokens (or documents), with a gradient."
    weight: float
    "How many tokens (or documents) it is a sum over, or the sum of their weights."


def labels_of(batch: Batch, kind: type[T]) -> T:
    """The labels of a batch, if they are of that type."""
    if not isinstance(batch.labels, kind):
        repair = "Reader.prepare(..., labels=...) attaches them."
        raise bad("batch.labels", f"a {kind.__name__}", type(batch.labels).__name__, repair)
    return batch.labels


def cross_entropy(
    logits: Tensor, labels: Tensor, class_weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The sum over the rows (N, L) whose label (N,) is not -100, and the sum of the weights of their classes.

    Their quotient is torch's weighted mean. Without weights every row weighs 1.

    >>> total, weight = cross_entropy(torch.zeros(3, 2), torch.tensor([1, -100, 0]), torch.tensor([1.0, 3.0]))
    >>> total / weight, weight
    (tensor(0.6931), tensor(4.))
    """
    if not isinstance(labels, Tensor):
        raise no_tensor("labels", labels)
    if labels.shape != logits.shape[:1]:
        raise bad("labels", f"of shape {tuple(logits.shape[:1])}", tuple(labels.shape))
    logits = _single(logits)
    weights = by_class(class_weights, logits)
    total = F.cross_entropy(logits, labels, weights, ignore_index=IGNORE_INDEX, reduction="sum")
    learnt = labels != IGNORE_INDEX
    return total, learnt.sum() if weights is None else weights[labels[learnt]].sum()


def by_class(class_weights: Tensor | None, logits: Tensor) -> Tensor | None:
    """The weight of each class (L,), as the logits (N, L) need it."""
    if class_weights is None:
        return None
    if not isinstance(class_weights, Tensor):
        raise no_tensor("class_weights", class_weights)
    if class_weights.shape != logits.shape[1:]:
        raise bad("class_weights", f"of shape {tuple(logits.shape[1:])}", tuple(class_weights.shape))
    return class_weights.to(logits)


def weighted_mean(total: Tensor, weight: Tensor) -> Tensor:
    """total / weight, and 0 where nothing weighs anything (with a gradient of 0)."""
    return total / torch.where(weight > 0, weight, torch.ones_like(weight))


def group_logsumexp(values: Tensor, group: Tensor, groups: int) -> Tensor:
    """log(sum(exp)) over the rows of each group: (N, K), (N,) -> (groups, K); -inf for an empty group.

    >>> group_logsumexp(torch.zeros(5, 1), torch.tensor([0, 0, 0, 1, 1]), 2).exp().flatten()
    tensor([3., 2.])
    """
    values = _single(values)
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


def _single(x: Tensor) -> Tensor:
    """At least float32: a sum in a half type loses what is added to it."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
