"""The compiled CPU kernels: hands addresses, sizes and strides to longspan._native."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

import longspan._native as _native  # after torch, whose OpenMP threads it shares
from longspan.engine.backends.base import Gradients, Problem
from longspan.engine.plan import PlanArrays
from longspan.errors import bad

ABI = 2
LARGEST_HEAD = 1024
DTYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}

_View = tuple[int, ...]  # address, strides
_Numbers = tuple[list[int], _View, _View, _View, int, int, float, list[int], float, int, int, str]

_target: ContextVar[str] = ContextVar("longspan_target", default="")  # empty: the best this CPU can run

if _native.abi_version() != ABI:
    raise ImportError(
        f"longspan._native has ABI {_native.abi_version()}, but {ABI} is needed; reinstall longspan"
    )


@contextmanager
def force_target(name: str | None) -> Iterator[None]:
    """Run the kernels of one instruction set ("scalar", "avx2", "avx512"); None: the best there is."""
    if name is not None and name not in _native.targets():
        raise bad(
            "target", f"one of {', '.join(_native.targets())}", name, "Others cannot run on this machine."
        )
    token = _target.set(name or "")
    try:
        yield
    finally:
        _target.reset(token)


class Native:
    """Fused kernels, forward and backward: one pass over the plan's tiles, float32 inside."""

    name = "native"

    def refuses(self, problem: Problem) -> list[str]:
        q = problem.q
        reasons = []
        if q.device.type != "cpu":
            reasons.append(f"runs on the CPU, but q is on {q.device}")
        if q.dtype not in DTYPES:
            reasons.append(f"computes float32, bfloat16 and float16, but q is {q.dtype}")
        if not 1 <= q.shape[2] <= LARGEST_HEAD:
            reasons.append(f"takes head sizes from 1 to {LARGEST_HEAD}, but q has {q.shape[2]}")
        return reasons

    def forward(self, problem: Problem) -> tuple[Tensor, Tensor]:
        rows, heads, dim = problem.q.shape
        out = torch.empty((rows, heads, dim), dtype=problem.q.dtype)
        lse = torch.empty((rows, heads), dtype=torch.float32)
        terms = _float32(problem)
        _native.forward(*_numbers(problem, terms), out.data_ptr(), lse.data_ptr())
        return out, lse

    def backward(
        self, problem: Problem, out: Tensor, lse: Tensor, grad_out: Tensor, grad_lse: Tensor | None
    ) -> Gradients:
        terms = _float32(problem)
        inputs = (problem.q, problem.k, problem.v, problem.relative, problem.content, problem.table)
        make = [torch.empty] * 3 + [torch.zeros] * 3  # the kernel writes every row of the first three
        grads = [
            None if x is None else new(x.shape, dtype=torch.float32)
            for x, new in zip(inputs, make, strict=True)
        ]
        lse = lse.contiguous()
        grad_lse = None if grad_lse is None else grad_lse.float().contiguous()
        _native.backward(
            *_numbers(problem, terms),
            _view(out),
            lse.data_ptr(),
            _view(grad_out),
            _address(grad_lse),
            [_address(g) for g in grads],
        )
        return Gradients(*(_like(g, x) for g, x in zip(grads, inputs, strict=True)))


def linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    scales: Tensor | None,
    plus: Tensor | None,
    gelu: bool,
    into: Tensor,
) -> None:
    """into = act(x weight' + bias) + plus; with `scales` the weights are int8, times the scale of their row.

    Rows of float32, elements of a row side by side; `weight` contiguous. The caller has checked shapes.
    """
    addresses = [_address(t) for t in (x, weight, scales, bias, plus, into)]
    strides = [0 if t is None else t.stride(0) for t in (x, plus, into)]
    sizes = [*strides, len(x), weight.shape[1], len(weight)]
    _native.linear(addresses, sizes, gelu, torch.get_num_threads(), _target.get())


def serves_linear(kind: torch.dtype) -> bool:
    """Whether layers with weights of this type are faster here than in torch.

    float32: where AVX2 is the best there is. With AVX-512 torch's library reaches more than ours was ever
    measured to, and without AVX2 ours is plain C++. int8: unless the processor has VNNI, which torch uses.
    """
    if kind == torch.int8:
        return not _native.features()["avx512vnni"]
    return (_target.get() or _native.targets()[0]) == "avx2"


def _like(grad: Tensor | None, x: Tensor | None) -> Any:
    return None if grad is None or x is None else grad.to(x.dtype)


def _address(x: Tensor | None) -> int:
    return 0 if x is None else x.data_ptr()


def _view(x: Tensor) -> _View:
    return (x.data_ptr(), *x.stride())


def _float32(problem: Problem) -> tuple[Tensor | None, ...]:
    """The terms as the kernels read them; they are small, so a copy costs nothing."""
    terms = (problem.relative, problem.content, problem.table)
    return tuple(None if x is None else x.detach().float().contiguous() for x in terms)


def _plan(a: PlanArrays, queries: int, keys: int) -> list[int]:
    numbers = [x.data_ptr() for x in a]
    sizes = (a.head_class, a.class_start, a.q_rows, a.k_rows, a.entries, a.masks, a.label_tiles, a.label_list)
    numbers += [len(x) for x in sizes]
    numbers[14] -= 1  # classes are one fewer than their starts
    return [*numbers, queries, keys]


def _numbers(problem: Problem, terms: tuple[Tensor | None, ...]) -> _Numbers:
    """What both directions need to know of a problem, in the order of the native functions' arguments."""
    q, k, v = problem.q, problem.k, problem.v
    labels = next((len(x) for x in (terms[0], terms[2]) if x is not None), 0)
    return (
        _plan(problem.arrays, q.shape[0], k.shape[0]),
        _view(q),
        _view(k),
        _view(v),
        DTYPES[q.dtype],
        q.shape[2],
        problem.scale,
        [*(_address(x) for x in terms), labels],
        problem.dropout,
        0 if problem.seed is None else int(problem.seed) & (2**64 - 1),
        torch.get_num_threads(),
        _target.get(),
    )
