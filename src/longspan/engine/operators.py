"""The operators `longspan::attend` and `longspan::attend_backward`, their autograd, and when to skip them."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from longspan.engine.backends import known, select
from longspan.engine.backends.base import Problem, arithmetic
from longspan.engine.checks import check_devices, check_problem, check_results, check_values
from longspan.engine.packed import unpack
from longspan.engine.plan import PlanArrays
from longspan.errors import BackendError, bad

_PROBLEM = (
    "Tensor q, Tensor k, Tensor v, Tensor[] plan, float scale, Tensor? relative, Tensor? content, "
    "Tensor? table, float dropout, Tensor? seed, float? softcap, str backend"
)
_LIBRARY = torch.library.Library("longspan", "DEF")
_LIBRARY.define(f"attend({_PROBLEM}) -> (Tensor, Tensor)")
_LIBRARY.define(
    f"attend_backward(Tensor grad_out, Tensor? grad_lse, Tensor out, Tensor lse, {_PROBLEM}) -> Tensor[]"
)

Arguments = tuple[Any, ...]  # what _PROBLEM lists; an empty backend name means any backend
SAVED = 9
"""Tensors that backward needs beside the plan's: all its arrays, or the one that they are packed in."""


def direct(problem: Problem) -> bool:
    """Whether a backend can be called as it is: no autograd, no autocast, nothing intercepts operators."""
    inputs = differentiable(problem)
    if torch.compiler.is_compiling() or not _alone(inputs):
        return False
    differentiated = torch.is_grad_enabled() and any(x.requires_grad for x in inputs)
    return not differentiated and not torch.is_autocast_enabled(problem.q.device.type)


def attend(problem: Problem, backend: str | None = None) -> tuple[Tensor, Tensor]:
    """(out, lse), differentiable; by the operator, which costs more, only where something intercepts it."""
    name = "" if backend is None else known(backend)
    pair: tuple[Tensor, Tensor]
    if torch.compiler.is_compiling() or not _alone(differentiable(problem)):
        pair = torch.ops.longspan.attend(*problem[:3], list(problem.arrays), *problem[4:], name)
    else:
        pair = _Attend.apply(*problem[:3], problem.arrays, *problem[4:], name)  # type: ignore[no-untyped-call]
    return pair


def differentiable(problem: Problem) -> list[Tensor]:
    """The inputs that can have gradients."""
    terms = (problem.relative, problem.content, problem.table)
    return [problem.q, problem.k, problem.v, *(x for x in terms if x is not None)]


def _alone(tensors: Iterable[Tensor]) -> bool:
    """Whether nothing intercepts an operator: plain tensors, no dispatch mode, no function transform."""
    if torch._C._len_torch_dispatch_stack() or torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    return all(type(x) is Tensor or type(x) is torch.nn.Parameter for x in tensors)


def _problem(arguments: Arguments) -> tuple[Problem, str | None]:
    q, k, v, plan, *rest, backend = arguments
    if len(plan) not in (1, len(PlanArrays._fields)):
        raise bad("plan", f"the {len(PlanArrays._fields)} arrays of a Plan", f"{len(plan)} tensors")
    arrays = unpack(plan[0]) if len(plan) == 1 else PlanArrays(*plan)
    return Problem(q, k, v, arrays, *rest), backend or None


def _checked(arguments: Arguments) -> Arguments:
    """The arguments, if they fit together: an operator can be called with any tensors."""
    problem, name = _problem(arguments)
    check_problem(problem)
    if select(problem, name).trusts_plans:
        labels = next((len(x) for x in (problem.relative, problem.table) if x is not None), None)
        check_values(problem.arrays, labels)
    return arguments


def _forward(*arguments: Any) -> tuple[Tensor, Tensor]:
    """In the precision of the inputs: autocast already acted when they were computed."""
    problem, name = _problem(arguments)
    backend, device = select(problem, name), problem.q.device.type
    if not torch.is_autocast_enabled(device):
        return backend.forward(problem)
    with torch.autocast(device, enabled=False):
        return backend.forward(problem)


def _backward(
    grad_out: Tensor, grad_lse: Tensor | None, out: Tensor, lse: Tensor, *arguments: Any
) -> list[Tensor]:
    problem, backend = _problem(arguments)
    check_results(problem, out, lse, grad_out, grad_lse)
    gradients = select(problem, backend).backward(problem, out, lse, grad_out, grad_lse)
    return [gradient for gradient in gradients if gradient is not None]


class _Attend(torch.autograd.Function):
    """Autograd of the direct call; the operator's is registered from the same two functions."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        output = _forward(*arguments)
        _save(ctx, arguments, output)
        return output

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor | None, grad_lse: Tensor | None) -> tuple[Tensor | None, ...]:
        out, lse, q, k, v, relative, content, table, seed, *plan = ctx.saved_tensors
        scale, dropout, softcap, backend = ctx.numbers
        if grad_out is None:
            grad_out = torch.zeros_like(out)
        terms = relative, content, table
        arguments = (q, k, v, plan, scale, *terms, dropout, seed, softcap, backend)
        direct = not torch.is_grad_enabled() and not torch.compiler.is_compiling() and _alone((q, grad_out))
        call = _backward if direct else torch.ops.longspan.attend_backward
        gradients = iter(call(grad_out, grad_lse, out, lse, *arguments))
        dq, dk, dv = next(gradients), next(gradients), next(gradients)
        of_terms = [None if x is None else next(gradients) for x in terms]
        return dq, dk, dv, None, None, *of_terms, None, None, None, None


def _save(ctx: Any, inputs: Arguments, output: tuple[Tensor, Tensor]) -> None:
    """Keep what backward needs."""
    q, k, v, plan, scale, relative, content, table, dropout, seed, softcap, backend = inputs
    ctx.save_for_backward(*output, q, k, v, relative, content, table, seed, *plan)  # SAVED and the plan
    ctx.numbers = scale, dropout, softcap, backend
    ctx.set_materialize_grads(False)


def _operator_backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
    """The same, with one gradient for each tensor of a list, as operators require."""
    dq, dk, dv, _, *rest = _Attend.backward(ctx, *grads)
    return dq, dk, dv, [None] * (len(ctx.saved_tensors) - SAVED), *rest


def _once(ctx: Any, *grads: Any) -> None:
    raise BackendError(
        "Attention can be differentiated once, but a second derivative was requested. "
        "Leave out create_graph=True."
    )


def _traced(arguments: Arguments) -> Problem:
    """The problem where tensors have no values: a packed plan stays as it is."""
    return Problem(*arguments[:-1]) if len(arguments[3]) == 1 else _problem(arguments)[0]


def _fake_forward(*arguments: Any) -> tuple[Tensor, Tensor]:
    """Shapes only, those of q with the head size of v; called for tensors of the device "meta" too."""
    problem = _traced(arguments)
    check_devices(problem)
    q = problem.q
    return q.new_empty(*q.shape[:2], problem.v.shape[2]), q.new_empty(q.shape[:2], dtype=arithmetic(q.dtype))


def _fake_backward(
    grad_out: Tensor, grad_lse: Tensor | None, out: Tensor, lse: Tensor, *arguments: Any
) -> list[Tensor]:
    problem = _traced(arguments)
    check_devices(problem, grad_out=grad_out, grad_lse=grad_lse, out=out, lse=lse)
    return [x.new_empty(x.shape) for x in differentiable(problem)]


_LIBRARY.impl("attend", lambda *a: _forward(*_checked(a)), "CompositeExplicitAutograd")
_LIBRARY.impl("attend_backward", lambda *a: _backward(*a[:4], *_checked(a[4:])), "CompositeExplicitAutograd")
torch.library.register_fake("longspan::attend", _fake_forward, lib=_LIBRARY)
torch.library.register_fake("longspan::attend_backward", _fake_backward, lib=_LIBRARY)
torch.library.register_autograd("longspan::attend", _operator_backward, setup_context=_save, lib=_LIBRARY)
torch.library.register_autograd("longspan::attend_backward", _once, lib=_LIBRARY)
