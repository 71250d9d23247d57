"""The compiled CPU kernels as a backend; longspan.native hands them addresses, sizes and strides."""

from itertools import zip_longest
from math import prod

import torch
from torch import Tensor

from longspan import native
from longspan.engine.backends.base import Gradients, Problem
from longspan.engine.plan import PlanArrays, array_format


class Native:
    """Fused kernels, forward and backward: one pass over the plan's tiles, float32 inside."""

    name = "native"
    trusts_plans = False

    def __init__(self) -> None:
        self._core = native.load()
        _check_plan_arrays(self._core.plan_arrays())

    def refuses(self, problem: Problem) -> list[str]:
        q = problem.q
        reasons = []
        if q.device.type != "cpu":
            reasons.append(f"runs on the CPU, but q is on {q.device}")
        if q.dtype not in native.DTYPES:
            reasons.append(f"computes float32, bfloat16 and float16, but q is {q.dtype}")
        if not 1 <= q.shape[2] <= native.LARGEST_HEAD:
            reasons.append(f"takes head sizes from 1 to {native.LARGEST_HEAD}, but q has {q.shape[2]}")
        if not 1 <= (size := problem.v.shape[2]) <= native.LARGEST_HEAD:
            reasons.append(f"takes values of sizes from 1 to {native.LARGEST_HEAD}, but v has {size}")
        if problem.softcap is not None:
            low, high = native.SOFTCAPS
            if not low <= problem.softcap <= high:
                reasons.append(f"takes a softcap from {low:g} to {high:g}, but it is {problem.softcap:g}")
            if problem.relative is not None:
                reasons.append("does not cap scores that have relative keys")
        return reasons

    def forward(self, problem: Problem, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
        q, k, v = (x.resolve_neg() for x in problem[:3])
        out = torch.empty((*q.shape[:2], v.shape[2]), dtype=q.dtype) if out is None else out
        lse = torch.empty(q.shape[:2], dtype=torch.float32)
        terms = _float32(problem)  # only addresses are passed on: the copy must outlive the call
        self._core.forward(*_arguments(problem, q, k, v, terms), out.data_ptr(), lse.data_ptr())
        return out, lse

    def backward(
        self, problem: Problem, out: Tensor, lse: Tensor, grad_out: Tensor, grad_lse: Tensor | None
    ) -> Gradients:
        q, k, v, out, grad_out = (x.resolve_neg() for x in (*problem[:3], out, grad_out))
        terms = _float32(problem)
        grad_lse = None if grad_lse is None else grad_lse.resolve_neg().contiguous()
        lse = lse.resolve_neg().contiguous()
        products = (torch.empty(x.shape, dtype=torch.float32) for x in (q, k, v))
        inputs = (q, k, v, problem.relative, problem.content, problem.table)
        gradients = [*products, *(None if x is None else torch.zeros_like(x) for x in terms)]
        self._core.backward(
            *_arguments(problem, q, k, v, terms),
            native.view(out),
            native.address(lse),
            native.view(grad_out),
            native.address(grad_lse),
            [native.address(x) for x in gradients],
        )
        pairs = zip(gradients, inputs, strict=True)
        return Gradients(*(None if g is None or x is None else g.to(x.dtype) for g, x in pairs))  # type: ignore[arg-type]


def _check_plan_arrays(compiled: list[tuple[str, int, int]]) -> None:
    """Raises an ImportError unless the core was compiled for these very PlanArrays."""
    formats = ((name, *array_format(name)) for name in PlanArrays._fields)
    ours = ((name, 8 * dtype.itemsize, prod(row)) for name, dtype, row in formats)
    for number, (theirs, our) in enumerate(zip_longest(compiled, ours)):
        if theirs != our:
            raise ImportError(
                f"longspan._native was compiled for other plans: array {number} is {theirs} there, but {our} "
                "in PlanArrays (name, bits, elements of a row); reinstall longspan"
            )


def _arguments(
    problem: Problem, q: Tensor, k: Tensor, v: Tensor, terms: list[Tensor | None]
) -> native.Arguments:
    numbers = problem.dropout, problem.seed, problem.softcap
    return native.arguments(problem.arrays, q, k, v, problem.scale, terms, *numbers)


def _float32(problem: Problem) -> list[Tensor | None]:
    """The terms as the kernels read them; they are small, so a copy costs nothing."""
    terms = (problem.relative, problem.content, problem.table)
    return [None if x is None else x.detach().resolve_neg().float().contiguous() for x in terms]
