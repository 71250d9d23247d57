"""The native kernels live through fork, and cut long lists and few rows without changing a bit."""

import multiprocessing
import os
import signal

import pytest
import torch
from torch import Tensor

from longspan.engine.backends import load
from longspan.engine.call import attention
from longspan.engine.plan import Plan, plan
from longspan.layout import Layout
from longspan.patterns import Full, GlobalTokens, Window

native = pytest.mark.skipif(
    load("native").__class__.__name__ == "Missing", reason="the native core is not installed"
)


def inputs(rows: int, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    given = torch.Generator().manual_seed(3)
    q = torch.randn(rows, 2, 32, generator=given)
    k, v = torch.randn(2, keys, 2, 32, generator=given)
    return q, k, v


def attend(rows: int, keys: int, made: Plan, threads: int) -> Tensor:
    q, k, v = inputs(rows, keys)
    torch.set_num_threads(threads)
    return attention(q, k, v, made, backend="native")


@native
def test_a_forked_child_computes_what_its_parent_did() -> None:
    made = plan(Window(40) | GlobalTokens(), Layout.packed([500], marked=[[0]]), heads=2)
    expected = attend(500, 500, made, threads=2)  # starts OpenMP threads, which a child does not inherit
    for _ in range(20):
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # a child that hangs is killed
            os._exit(0 if torch.equal(attend(500, 500, made, threads=2), expected) else 1)
        _, status = os.waitpid(child, 0)
        assert status == 0
    assert torch.equal(attend(500, 500, made, threads=2), expected)


@native
def test_a_fresh_process_computes_the_same() -> None:
    made = plan(Window(40), Layout.packed([200]), heads=2)
    expected = attend(200, 200, made, threads=2)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert torch.equal(pool.apply(attend, (200, 200, made, 2)), expected)


@native
@pytest.mark.parametrize("rows", [1, 4, 8, 9, 64])
def test_long_lists_are_cut_alike_whatever_the_threads(rows: int) -> None:
    """64 key tiles and more in a list: segments, worked on together by one thread or apart by several."""
    made = plan(Full(), Layout.packed([rows]), Layout.packed([64 * 70 + 5]), heads=2)
    one, *others = (attend(rows, 64 * 70 + 5, made, threads) for threads in (1, 2, 7))
    q, k, v = (x.double() for x in inputs(rows, 64 * 70 + 5))
    exact = attention(q, k, v, made, backend="dense")
    assert torch.allclose(one.double(), exact, atol=1e-6)
    assert all(torch.equal(one, other) for other in others)
