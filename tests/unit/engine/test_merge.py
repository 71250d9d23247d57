"""Partial attentions join into the whole."""

import pytest
import torch
from torch import Tensor

from longspan.engine.call import attention
from longspan.engine.merge import merge
from longspan.engine.plan import plan
from longspan.errors import InputError
from longspan.layout import Layout
from longspan.patterns import Window

ROWS = Layout.packed([30, 11])
HEADS, SIZE = 2, 5


def partial(q: Tensor, k: Tensor, v: Tensor, rows: list[int]) -> tuple[Tensor, Tensor]:
    """Attention over some of the keys only."""
    made = plan(Window(4), ROWS, ROWS.take(rows), heads=HEADS)
    return attention(q, k[rows], v[rows], made, return_lse=True)


def inputs() -> list[Tensor]:
    chance = torch.Generator().manual_seed(1)
    shapes = ((ROWS.size, heads, SIZE) for heads in (HEADS, 1, 1))
    return [torch.randn(x, generator=chance, dtype=torch.float64).requires_grad_() for x in shapes]


def test_three_parts_make_one_softmax_with_its_gradients() -> None:
    q, k, v = inputs()
    cuts = [[i for i in range(ROWS.size) if i % 7 in some] for some in ({0}, {1, 2, 5}, {3, 4, 6})]
    found = merge(*(partial(q, k, v, rows) for rows in cuts))
    expected = partial(q, k, v, list(range(ROWS.size)))
    torch.testing.assert_close(found, expected)
    upstream = tuple(torch.randn_like(x) for x in expected)
    grads = (torch.autograd.grad(pair, (q, k, v), upstream) for pair in (found, expected))
    torch.testing.assert_close(*grads)


def test_parts_that_saw_nothing_give_nothing_and_no_nan() -> None:
    q, k, v = inputs()
    out, lse = merge(partial(q, k, v, [0]), partial(q, k, v, [1]))  # rows from 6 on see neither
    assert not out[6:].any()
    assert bool((lse[6:] == -torch.inf).all())
    grads = torch.autograd.grad(out.sum() + lse[:5].sum(), (q, k, v))
    assert all(grad.isfinite().all() for grad in grads)
    assert not any(grad[6:].any() for grad in grads)


def test_gradients_of_a_merge_are_right() -> None:
    chance = torch.Generator().manual_seed(1)
    out = [torch.randn(3, 2, 4, generator=chance, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    lse = [torch.randn(3, 2, generator=chance, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    assert torch.autograd.gradcheck(lambda *x: merge((x[0], x[2]), (x[1], x[3])), (*out, *lse))


def test_one_part_stays_as_it_is() -> None:
    pair = torch.randn(3, 2, 4), torch.randn(3, 2)
    torch.testing.assert_close(merge(pair), pair)


def test_half_precision_parts_keep_their_dtype() -> None:
    pair = torch.randn(3, 2, 4).bfloat16(), torch.randn(3, 2)
    assert merge(pair, pair)[0].dtype == torch.bfloat16


def test_bad_parts_are_named() -> None:
    pair = torch.zeros(3, 2, 4), torch.zeros(3, 2)
    with pytest.raises(InputError, match="at least one"):
        merge()
    with pytest.raises(InputError, match=r"`parts\[1\]` must be of shape \(3, 2, 4\)"):
        merge(pair, (torch.zeros(5, 2, 4), torch.zeros(5, 2)))
    with pytest.raises(InputError, match="lse of shape"):
        merge(pair, (torch.zeros(3, 2, 4), torch.zeros(2, 3)))
