"""Sizes beyond 32 bits: offsets into tensors, positions near the last one, more rows than can be numbered."""

import mmap
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from longspan import native
from longspan.engine.call import attention
from longspan.engine.plan import MOST_ROWS, _plan, plan
from longspan.errors import FARTHEST, InputError
from longspan.layout import Layout, Site
from longspan.patterns import Causal, Full, GlobalTokens, Pattern, Window

built = pytest.mark.skipif(native.core() is None, reason="the native core is not built")
NO_RESERVE = 0x4000  # Linux's MAP_NORESERVE, which Python's mmap does not name
ROWS, APART = 150, 1 << 25
"""Rows 128 MB apart: the last is 20 GB behind the first, and its offset needs 33 bits."""


@pytest.fixture(scope="module")
def sparse() -> Tensor:
    """20 GB of address space; memory is used only where something is written."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    try:
        return torch.frombuffer(mmap.mmap(-1, 4 * (ROWS * APART), flags=flags), dtype=torch.float32)
    except OSError as error:
        pytest.skip(f"no address space of 20 GB: {error}")


def far_apart(sparse: Tensor, x: Tensor, start: int) -> Tensor:
    """The values of x, rows far apart."""
    strides = {2: (APART, 1), 3: (APART, x.shape[-1] + 3, 1)}[x.dim()]
    return sparse.as_strided(x.shape, strides, start).copy_(x)


@built
def test_attention_reads_rows_that_lie_gigabytes_apart(sparse: Tensor) -> None:
    assert (ROWS - 1) * APART > 2**32
    made = plan(Window(20) | GlobalTokens(), Layout.packed([ROWS], marked=[[0]]), heads=2)
    near = torch.randn(4, ROWS, 2, 9, generator=torch.Generator().manual_seed(1))
    far = [far_apart(sparse, x, 64 * i) for i, x in enumerate(near)]
    results = []
    for q, k, v, grad in (near, far):
        a, b, c = (x.detach().requires_grad_() for x in (q, k, v))
        out = attention(a, b, c, made, backend="native")
        results.append([out, *torch.autograd.grad(out, (a, b, c), grad)])
    for expected, found in zip(*results, strict=True):
        assert torch.equal(found, expected)


@built
@pytest.mark.parametrize("int8", [False, True])
def test_a_linear_layer_reads_and_writes_rows_that_lie_gigabytes_apart(sparse: Tensor, int8: bool) -> None:
    weight, scales = torch.randn(7, 33), torch.rand(7) if int8 else None
    weight = (weight * 40).to(torch.int8) if int8 else weight
    x, plus = torch.randn(ROWS, 33), torch.randn(ROWS, 7)
    expected = torch.empty(ROWS, 7)
    native.linear(x, weight, None, scales=scales, plus=plus, act=1, into=expected)
    far = [far_apart(sparse, rows, 1024 + 64 * i) for i, rows in enumerate((x, plus, torch.zeros(ROWS, 7)))]
    native.linear(far[0], weight, None, scales=scales, plus=far[1], act=1, into=far[2])
    assert torch.equal(far[2], expected)


@pytest.mark.parametrize(
    "pattern", [Window(9), Window(9, dilation=3), Causal(), Full() & Causal(), GlobalTokens()]
)
def test_the_last_positions_are_planned_as_the_first(pattern: Pattern) -> None:
    first = Layout.packed([130], marked=[[3]], start=2)
    last = Layout.packed(
        [130], marked=[[3]], start=FARTHEST - 130
    )  # as many as there are, a multiple of 3 later
    assert (FARTHEST - 132) % 3 == 0
    one, other = (plan(pattern, layout, heads=1).arrays for layout in (first, last))
    for name in ("q_rows", "k_rows", "entry_start", "entries", "masks"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name


def test_more_rows_than_can_be_numbered_are_refused() -> None:
    row = Layout.packed([1])
    columns: list[Any] = [np.broadcast_to(column, MOST_ROWS + 1) for column in row.sites.columns]
    many = Layout(Site(*columns), row.lengths)
    with pytest.raises(
        InputError, match="`queries` must be of at most 2,147,483,647 rows, but is 2147483648"
    ):
        _plan.__wrapped__(Full(), many, many, 1, None)  # the cache would first hash all the rows
