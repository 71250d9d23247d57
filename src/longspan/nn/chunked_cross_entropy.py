"""Cross-entropy over a large vocabulary in chunks: the logits of all rows are never in memory at once."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from longspan.errors import one_of
from longspan.nn.linear import by_weight, wide
from longspan.nn.product import of_columns, of_rows

IGNORE_INDEX = -100
"""The label of a row that does not count."""
ROWS = 256
"""Rows whose logits are in memory at once; with fewer, the products become slow."""


def chunked_cross_entropy(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    *,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """The mean (or "sum") cross entropy of the scores x W' + b (N, V) to the labels (N,); 0 where there are
    none.

    Scores become their own gradient as soon as they are there, and that the gradients of x (N, C), `weight`
    (V, C) and `bias` (V,), which wait for the backward pass: nothing is computed twice.

    >>> chunked_cross_entropy(torch.ones(3, 2), torch.zeros(5, 2), torch.zeros(5), torch.tensor([4, -100, 0]))
    tensor(1.6094)
    """
    mean = one_of("reduction", reduction, ("mean", "sum")) == "mean"
    weight = wide(weight)
    bias = weight.new_zeros(len(weight)) if bias is None else bias.to(weight.dtype)
    with_grad = torch.is_grad_enabled()
    with torch.autocast(x.device.type, enabled=False):
        loss: Tensor = _ChunkedCrossEntropy.apply(  # type: ignore[no-untyped-call]
            x.to(weight.dtype), weight, bias, labels, label_smoothing, mean, with_grad
        )
    return loss


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        labels: Tensor,
        smoothing: float,
        mean: bool,
        with_grad: bool,
    ) -> Tensor:
        learnt = labels != IGNORE_INDEX
        share = learnt.to(x.dtype)
        if mean:
            share = share / learnt.sum().clamp_min(1)
        labels = labels.masked_fill(~learnt, 0).unsqueeze(1)
        wanted = [with_grad and needed for needed in ctx.needs_input_grad[:3]]
        of_x = torch.empty_like(x) if wanted[0] else None
        of_weight = torch.zeros_like(weight) if wanted[1] else None
        of_bias = torch.zeros_like(bias) if wanted[2] else None
        room, total = x.new_empty(min(ROWS, len(x)), len(weight)), x.new_zeros(())
        for start in range(0, len(x), ROWS):
            piece = slice(start, start + ROWS)
            rows = x[piece]
            scores = by_weight(rows, weight, bias, room[: len(rows)])
            total += _turn_to_gradient(scores, labels[piece], share[piece], smoothing)
            if of_x is not None:
                of_rows(scores, weight, of_x[piece])
            if of_weight is not None:
                of_columns(scores, rows, of_weight)
            if of_bias is not None:
                of_bias += scores.sum(0)
        ctx.save_for_backward(of_x, of_weight, of_bias)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.saved_tensors
        if upstream != 1:  # most are 1, and a copy of the weight's gradient is large
            gradients = [None if gradient is None else gradient * upstream for gradient in gradients]
        return (*gradients, None, None, None, None)


def _turn_to_gradient(scores: Tensor, labels: Tensor, share: Tensor, smoothing: float) -> Tensor:
    """The loss of rows that count by `share` (n,); their scores (n, V) are overwritten by its gradient.

    A label (n, 1) is to have all of the probability but `smoothing`, which all words have alike.
    """
    scores -= scores.amax(1, keepdim=True)
    right = scores.gather(1, labels).squeeze(1) * (1 - smoothing)
    if smoothing:
        right += scores.mean(1) * smoothing
    sums = scores.exp_().sum(1)
    scores *= (share / sums).unsqueeze(1)
    scores.scatter_add_(1, labels, share.unsqueeze(1) * (smoothing - 1))
    if smoothing:
        scores -= share.unsqueeze(1) * (smoothing / scores.shape[1])
    return (sums.log() - right).masked_fill(share == 0, 0.0) @ share  # 0 times infinity is no 0
