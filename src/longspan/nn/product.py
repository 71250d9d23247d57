"""The matrix products of a linear layer and of its gradients, by the native core where that is faster."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from longspan import native
from longspan.nn.openmp import calm_openmp

APART = 16
"""Floats between two rows of a copy: rows a page apart would fall on the same few lines of the cache."""


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W' + b in float32, differentiable once; x (N, in), W (out, in) contiguous.

    Only for those who asked `served` before.
    """
    calm_openmp()
    y: Tensor = _Product.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return y


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        y = x.new_empty(len(x), len(weight))
        native.linear(rows_of(x), weight, bias, into=y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        (x, weight), (for_x, for_weight, for_bias) = ctx.saved_tensors, ctx.needs_input_grad
        upstream = rows_of(upstream)
        of_x = of_rows(upstream, weight) if for_x else None
        of_weight = of_columns(upstream, x) if for_weight else None
        return of_x, of_weight, upstream.sum(0) if for_bias else None


def of_rows(x: Tensor, weight: Tensor, into: Tensor | None = None) -> Tensor:
    """x W, written to `into` where that is given; x (N, out), W (out, in)."""
    if not served(x, weight):
        return torch.mm(x, weight, out=into)
    into = x.new_empty(len(x), weight.shape[1]) if into is None else into
    native.linear(rows_of(x), rows_of(weight), None, across=True, into=into)
    return into


def of_columns(x: Tensor, y: Tensor, plus: Tensor | None = None) -> Tensor:
    """x' y, added to `plus` where that is given; x (N, A), y (N, B).

    The core reads one side by columns. It is the narrower one that is copied, unless something is added to.
    """
    if not served(x, y):
        return torch.mm(x.t(), y) if plus is None else plus.addmm_(x.t(), y)
    if plus is None and x.shape[1] > y.shape[1]:
        return of_columns(y, x).t()
    columns = x.new_empty(x.shape[1], len(x) + APART)[:, : len(x)]
    columns.copy_(x.t())
    into = x.new_empty(x.shape[1], y.shape[1]) if plus is None else plus
    native.linear(columns, rows_of(y), None, plus=plus, across=True, into=into)
    return into


def served(*matrices: Tensor) -> bool:
    """Whether the core multiplies matrices, and faster than torch."""
    read = all(x.dtype is torch.float32 and native.reads(x) for x in matrices)
    return read and native.serves_linear(torch.float32)


def rows_of(x: Tensor) -> Tensor:
    """x (N, C) with the elements of a row side by side."""
    return x if x.stride(1) == 1 else x.contiguous()
