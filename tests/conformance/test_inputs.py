"""Inputs that are legal but awkward: strange strides, nothing at all, nothing to see, huge numbers, NaN."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from conformance.rule import Case, engines, everywhere, judge, running
from longspan.engine.call import attention
from longspan.engine.plan import Plan, plan
from longspan.layout import Layout
from longspan.patterns import Causal, Full, GlobalTokens, Pattern, Window

HEADS, SIZE = 2, 20
ROWS = Layout.packed([70, 59], marked=[[0], [3]])
PLAN = plan(Window(9) | GlobalTokens(), ROWS, heads=HEADS)


@pytest.fixture(params=engines())
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    with running(request.param) as name:
        yield name


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def three(rows: int = ROWS.size) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = random(3, rows, HEADS, SIZE)
    return q, k, v


VIEWS: dict[str, Callable[[], tuple[Tensor, ...]]] = {
    "parts of a fused tensor": lambda: random(ROWS.size, 3, HEADS, SIZE).unbind(1),
    "heads first": lambda: tuple(x.transpose(0, 1) for x in random(3, HEADS, ROWS.size, SIZE)),
    "head size first": lambda: tuple(x.permute(2, 1, 0) for x in random(3, SIZE, HEADS, ROWS.size)),
    "every other number": lambda: random(3, ROWS.size, HEADS, 2 * SIZE)[..., ::2].unbind(0),
    "every third row": lambda: random(3, 3 * ROWS.size, HEADS, SIZE)[:, 1::3].unbind(0),
    "one head for all": lambda: random(3, ROWS.size, 1, SIZE).expand(-1, -1, HEADS, -1).unbind(0),
    "one row for all": lambda: random(3, 1, HEADS, SIZE).expand(-1, ROWS.size, -1, -1).unbind(0),
    "one number for all": lambda: random(3, 1, 1, 1).expand(-1, ROWS.size, HEADS, SIZE).unbind(0),
}


@pytest.mark.parametrize("name", VIEWS)
def test_strides_do_not_matter(name: str, backend: str) -> None:
    views = [x.detach().requires_grad_() for x in VIEWS[name]()]
    copies = [x.detach().clone(memory_format=torch.contiguous_format).requires_grad_() for x in views]
    upstream = views[0].detach().flip(0)
    found, expected = (attention(q, k, v, PLAN, backend=backend) for q, k, v in (views, copies))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert found.is_contiguous()
    grads = torch.autograd.grad(found, views, upstream)
    torch.testing.assert_close(
        grads, torch.autograd.grad(expected, copies, upstream.contiguous()), rtol=1e-5, atol=1e-5
    )


def test_an_expanded_gradient_is_read_right(backend: str) -> None:
    q, k, v = (x.requires_grad_() for x in three())
    found = torch.autograd.grad(attention(q, k, v, PLAN, backend=backend).sum(), (q, k, v))
    ones = torch.ones(ROWS.size, HEADS, SIZE)
    expected = torch.autograd.grad(attention(q, k, v, PLAN, backend=backend), (q, k, v), ones)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("queries", "keys"),
    [([], []), ([0], [0]), ([5], [0]), ([0], [5]), ([0, 3, 0], [0, 0, 4])],
    ids=str,
)
def test_nothing_to_see_gives_zeros_without_gradient(
    queries: list[int], keys: list[int], backend: str
) -> None:
    made = plan(Full(), Layout.packed(queries), Layout.packed(keys), heads=HEADS)
    q, k, v = (random(sum(n), HEADS, SIZE).requires_grad_() for n in (queries, keys, keys))
    out, lse = attention(q, k, v, made, return_lse=True, backend=backend)
    assert torch.equal(out, torch.zeros_like(q))
    assert torch.equal(lse, torch.full_like(lse, -torch.inf))
    grads = torch.autograd.grad(
        (out, lse), (q, k, v), (torch.ones_like(out), torch.full_like(lse, torch.nan))
    )
    assert all(torch.equal(grad, torch.zeros_like(grad)) for grad in grads)


def masked() -> Plan:
    mask = torch.ones(2, 70, dtype=torch.bool)
    mask[0, 40:] = mask[1, :66] = False
    return plan(Window(9), Layout.padded(mask.numpy()), heads=HEADS)


def test_rows_that_do_not_exist_come_out_zero_and_send_nothing_back(backend: str) -> None:
    q, k, v = (x.requires_grad_() for x in three(140))
    made = masked()
    out, lse = attention(q, k, v, made, return_lse=True, backend=backend)
    absent = ~torch.tensor(made.queries.sites.exists)
    assert not out[absent].any()
    assert bool((lse[absent] == -torch.inf).all())
    assert bool(lse[~absent].isfinite().all())
    grads = torch.autograd.grad(out.sum() + lse[~absent].sum(), (q, k, v))
    assert not any(grad[absent].any() for grad in grads)


def test_what_stands_in_rows_that_do_not_exist_is_never_read(backend: str) -> None:
    inputs, made = three(140), masked()
    expected = attention(*inputs, made, backend=backend)
    for x in inputs:
        x[~torch.tensor(made.queries.sites.exists)] = torch.nan
    assert torch.equal(attention(*inputs, made, backend=backend), expected)


@pytest.mark.parametrize("pattern", [Full(), Causal(), Window(3)], ids=repr)
def test_huge_scores_choose_one_key(pattern: Pattern, backend: str) -> None:
    q, k, v = (x.requires_grad_() for x in three())
    made = plan(pattern, ROWS, heads=HEADS)
    out, lse = attention(q * 1e6, k, v, made, return_lse=True, backend=backend)
    score = torch.einsum("nhd,khd->hnk", q.double(), k.double())
    seen = torch.tensor(pattern.matrix(ROWS)) > 0
    top = score.masked_fill(~seen, -torch.inf).topk(2)  # (H, N, 2)
    clear = (top.values[..., 0] - top.values[..., 1] > 1e-3).T  # (N, H): no near tie
    assert clear.double().mean() > 0.9
    best = v[top.indices[..., 0].T, torch.arange(HEADS)]
    torch.testing.assert_close(out[clear], best[clear])
    assert all(grad.isfinite().all() for grad in torch.autograd.grad(out.sum() + lse.sum(), (q, k, v)))


@everywhere(torch.float32)
@pytest.mark.parametrize("scale", [1e-4, 1.0])
def test_flat_and_peaked_rows_are_computed_right(scale: float, dtype: torch.dtype, engine: str) -> None:
    judge(Case(Window(9) | GlobalTokens(), ROWS, size=SIZE, scale=scale), dtype, engine)


def test_nan_in_a_query_stays_in_its_row(backend: str) -> None:
    q, k, v = three()
    expected = attention(q, k, v, PLAN, backend=backend)
    q[5, 1, 0] = torch.nan
    out = attention(q, k, v, PLAN, backend=backend)
    assert bool(out[5, 1].isnan().all())
    out[5, 1] = expected[5, 1]
    assert torch.equal(out, expected)


@pytest.mark.parametrize("poison", [torch.nan, torch.inf])
def test_a_sick_document_leaves_the_others_alone(poison: float, backend: str) -> None:
    inputs = three()
    expected = attention(*inputs, PLAN, backend=backend)
    for x in inputs:
        x[:70] = poison
    torch.testing.assert_close(attention(*inputs, PLAN, backend=backend)[70:], expected[70:], rtol=0, atol=0)
