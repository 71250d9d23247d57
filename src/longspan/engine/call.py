"""`attention`, the single entry point, and `attention_weights` to look at its probabilities."""

from collections.abc import Iterable
from typing import Literal, NamedTuple, cast, overload

import torch
from torch import Tensor

from longspan.engine import reference
from longspan.engine.backends import select
from longspan.engine.backends.base import Problem, arithmetic
from longspan.engine.backends.dense import decode
from longspan.engine.checks import check_groups, check_like, check_softcap, check_tensors
from longspan.engine.dropout import Dropout
from longspan.engine.operators import attend, differentiable, direct
from longspan.engine.packed import PackedPlan
from longspan.engine.plain import present
from longspan.engine.plan import Plan, PlanArrays
from longspan.engine.terms import RelativeKeys, ScoreTable, Term
from longspan.engine.watch import tell
from longspan.errors import InputError, bad

AnyPlan = Plan | PackedPlan


class Weights(NamedTuple):
    """Probabilities of some query rows over the keys they see, in the order of the keys."""

    probabilities: Tensor
    "(R, H, K), 0 after a row's last key."
    keys: Tensor
    "(R, H, K) key rows, -1 after a row's last."
    positions: Tensor
    "(R, H, K) their positions in the document, -1 after a row's last."


@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    plan: AnyPlan,
    *,
    scale: float | None = ...,
    terms: Iterable[Term] = ...,
    softcap: float | None = ...,
    dropout: Dropout | None = ...,
    return_lse: Literal[False] = ...,
    backend: str | None = ...,
    out: Tensor | None = ...,
) -> Tensor: ...


@overload
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    plan: AnyPlan,
    *,
    scale: float | None = ...,
    terms: Iterable[Term] = ...,
    softcap: float | None = ...,
    dropout: Dropout | None = ...,
    return_lse: Literal[True],
    backend: str | None = ...,
    out: Tensor | None = ...,
) -> tuple[Tensor, Tensor]: ...


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    plan: AnyPlan,
    *,
    scale: float | None = None,
    terms: Iterable[Term] = (),
    softcap: float | None = None,
    dropout: Dropout | None = None,
    return_lse: bool = False,
    backend: str | None = None,
    out: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Softmax attention over the pairs of a plan: q (N, H, D), k (K, G, D), v (K, G, Dv) to (N, H, Dv).

    G divides H, which is the plan's: query head h reads head h // (H / G) of k and v. With G = H each head
    has keys of its own (multi-head attention), with G = 1 all share them (multi-query), else groups do
    (grouped-query). Strides may be any.

    score = cap(scale * (q . k + (q + content) . relative[label])) + table[label] + log m, where m counts the
    pair and `scale` is D ** -0.5 if not given. With a `softcap` cap(x) = softcap * tanh(x / softcap) keeps
    scores between -softcap and softcap (Gemma 2, §2); without, it is x. A row with nothing to see is 0. With
    `return_lse` the result is (out, lse): lse is the log-sum-exp of each row's scores, (N, H), which `merge`
    takes. Where nothing is differentiated, the result may be written to `out` (N, H, Dv), which is returned.

    >>> import longspan as ls
    >>> plan = ls.plan(ls.patterns.Window(1), ls.Layout.packed([4]), heads=2)
    >>> x = torch.arange(4.0)[:, None, None].expand(4, 2, 3)
    >>> ls.attention(torch.zeros(4, 2, 3), x, x, plan)[:, 0, 0]
    tensor([0.5000, 1.0000, 2.0000, 2.5000])
    """
    check_tensors(q, k, v)
    if isinstance(plan, PackedPlan) and torch.compiler.is_compiling():
        arrays = cast(PlanArrays, (plan.buffer,))  # the operator unpacks it, and checks it then
    else:
        arrays = _arrays(plan, q)
        _check_rows(q, k, arrays)
    _check_values(k, v)
    if softcap is not None:
        check_softcap(softcap)
    relative, content, table = _take_terms(terms, plan, q) if terms else (None, None, None)
    if plan.shares_keys and torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v)):
        raise InputError(
            "`plan` must not be one of gathered rows where gradients are needed, but is. Use torch.no_grad()."
        )
    tell(q, k, plan, scale=scale, terms=terms, softcap=softcap, partial=return_lse)
    p, seed = (0.0, None) if dropout is None or not dropout.p else (dropout.p, dropout.counter(q.device))
    problem = Problem(q, k, v, arrays, _scale(scale, q), relative, content, table, p, seed, softcap)
    if out is not None:
        _check_out(out, problem)
    if (plain := present()) is not None and isinstance(plan, Plan):
        result, lse = plain.attend(problem, plan)
    elif direct(problem):
        result, lse = select(problem, backend).forward(problem, out)
    else:
        result, lse = attend(problem, backend)
    if out is not None and result is not out:
        result = out.copy_(result)
    return (result, lse) if return_lse else result


def attention_weights(
    q: Tensor,
    k: Tensor,
    plan: AnyPlan,
    rows: Iterable[int] | Tensor,
    *,
    scale: float | None = None,
    terms: Iterable[Term] = (),
    softcap: float | None = None,
) -> Weights:
    """The probabilities of some query rows, without dropout, and the keys they belong to; differentiable.

    >>> import longspan as ls
    >>> plan = ls.plan(ls.patterns.Window(1), ls.Layout.packed([4]), heads=1)
    >>> x = torch.zeros(4, 1, 2)
    >>> ls.attention_weights(x, x, plan, rows=[0, 2]).keys[:, 0]
    tensor([[ 0,  1, -1],
            [ 1,  2,  3]])
    """
    check_tensors(q, k, k)
    arrays = _arrays(plan, q)
    _check_rows(q, k, arrays)
    if softcap is not None:
        check_softcap(softcap)
    distinct, inverse = _row_numbers(rows, q).unique(return_inverse=True)
    count, label = decode(arrays, distinct)
    count = count[arrays.head_class]  # (C, R, K) -> (H, R, K)
    label = None if label is None else label[arrays.head_class]
    dtype = arithmetic(q.dtype)
    tensors = _take_terms(terms, plan, q) if terms else (None, None, None)
    relative, content, table = (x if x is None else x.to(dtype) for x in tensors)
    queries, keys, factor = q[distinct].to(dtype), k.to(dtype), _scale(scale, q)
    score = reference.scores(queries, keys, count, factor, label, relative, content, table, softcap)
    probability, _ = reference.softmax(score)
    visible = count > 0
    width = int(visible.sum(-1).max()) if visible.numel() else 0
    key_rows = visible.byte().argsort(dim=-1, descending=True, stable=True)[..., :width]
    padding = ~visible.gather(2, key_rows)
    columns = (
        probability.gather(2, key_rows),
        key_rows.masked_fill(padding, -1),
        arrays.k_positions.long()[key_rows].masked_fill(padding, -1),
    )
    return Weights(*(column.transpose(0, 1)[inverse] for column in columns))  # (H, R, K) -> (R, H, K)


def _arrays(plan: AnyPlan, q: Tensor) -> PlanArrays:
    if isinstance(plan, PackedPlan):
        return plan.arrays()
    if not isinstance(plan, Plan):
        raise bad("plan", "a Plan", type(plan).__name__, "Make one: plan(pattern, layout, heads=...).")
    return plan.arrays if q.device.type == "cpu" else plan.to(q.device)


def _check_rows(q: Tensor, k: Tensor, arrays: PlanArrays) -> None:
    heads, size = q.shape[1:]
    for name, x, sites, whose in (("q", q, arrays.q_sites, "queries"), ("k", k, arrays.k_positions, "keys")):
        if len(x) != len(sites):
            requirement = f"of {len(sites)} rows like the plan's {whose}"
            raise bad(name, requirement, len(x), "Make a plan for this layout.")
    if heads != (planned := len(arrays.head_class)):
        raise bad("q", f"of {planned} heads like the plan", heads, "Make a plan with heads=...")
    if size < 1:
        raise bad("q", "of head size at least 1", size)
    check_groups(heads, k.shape[1])
    if k.shape[2] != size:
        raise bad("k", f"of head size {size} like `q`", k.shape[2])


def _check_values(k: Tensor, v: Tensor) -> None:
    if v.shape[:2] != k.shape[:2]:
        raise bad("v", f"of shape ({k.shape[0]}, {k.shape[1]}, Dv) like `k`", tuple(v.shape))
    if v.shape[2] < 1:
        raise bad("v", "of head size at least 1", v.shape[2])


def _check_out(out: Tensor, problem: Problem) -> None:
    q, shape = problem.q, (*problem.q.shape[:2], problem.v.shape[2])
    if out.shape != shape or not out.is_contiguous():
        raise bad("out", f"contiguous and of shape {shape}", tuple(out.shape))
    check_like("out", out, q)
    if direct(problem) and any(_overlap(out, x) for x in problem[:3]):
        raise InputError("`out` must have memory of its own, but shares that of q, k or v.")
    if torch.is_grad_enabled() and any(x.requires_grad for x in (out, *differentiable(problem))):
        raise InputError("`out` must not be given where gradients are needed, but is. Use torch.no_grad().")


def _overlap(x: Tensor, y: Tensor) -> bool:
    """Whether what lies between the first and the last element of x and that of y has bytes in common."""
    (begin, end), (start, stop) = (_bytes(x), _bytes(y))
    return begin < stop and start < end


def _bytes(x: Tensor) -> tuple[int, int]:
    last = sum((size - 1) * step for size, step in zip(x.shape, x.stride(), strict=True))
    begin = x.data_ptr()  # 0 on the device "meta"
    return begin, begin + (last + 1) * x.element_size() if x.numel() and begin else begin


def _scale(scale: float | None, q: Tensor) -> float:
    if scale is None:
        return q.shape[2] ** -0.5  # type: ignore[no-any-return]
    if not isinstance(scale, (int, float)):
        raise bad("scale", "a number", type(scale).__name__, "Multiply q by a learned scale.")
    return float(scale)


def _take_terms(terms: Iterable[Term], plan: AnyPlan, q: Tensor) -> tuple[Tensor | None, ...]:
    """(relative, content, table), checked against the plan and q."""
    if plan.label_count is None:
        raise InputError(
            "`terms` must be given with a plan that has labels, but this plan has none. "
            "Make it with plan(..., labels=ClippedDistance(limit))."
        )
    if isinstance(terms, (RelativeKeys, ScoreTable)):
        raise bad("terms", "a list", type(terms).__name__, "Write terms=[...].")
    relative = content = table = None
    size, (heads, width) = plan.label_count, q.shape[1:]
    for term in terms:
        if isinstance(term, RelativeKeys) and relative is None:
            relative, content = term.relative, term.content
            _check_term("relative", relative, (size, heads, width), q)
            if content is not None:
                _check_term("content", content, (heads, width), q)
        elif isinstance(term, ScoreTable) and table is None:
            table = term.table
            _check_term("table", table, (size, heads), q)
        else:
            requirement = "at most one RelativeKeys and one ScoreTable"
            raise bad("terms", requirement, type(term).__name__, "Add the tables of equal terms first.")
    return relative, content, table


def _check_term(name: str, x: Tensor, shape: tuple[int, ...], q: Tensor) -> None:
    if x.shape != shape:
        letters = "(labels, heads, head size)" if len(shape) == 3 else "(heads, head size)"
        letters = "(labels, heads)" if name == "table" else letters
        raise bad(name, f"of shape {shape} = {letters}", tuple(x.shape))
    check_like(name, x, q)


def _row_numbers(rows: Iterable[int] | Tensor, q: Tensor) -> Tensor:
    """`rows` as a tensor of row numbers of q."""
    numbers = torch.as_tensor(rows if isinstance(rows, Tensor) else list(rows), device=q.device)
    numbers = numbers.long() if not numbers.numel() else numbers
    if numbers.dim() != 1 or numbers.is_floating_point() or numbers.dtype == torch.bool:
        raise bad("rows", "a list of row numbers", rows, "Use mask.nonzero().flatten() for a mask.")
    for row in (numbers.min(), numbers.max()) if numbers.numel() else ():
        if not 0 <= row < len(q):
            raise bad("rows", f"row numbers from 0 to {len(q) - 1}", int(row))
    return numbers
