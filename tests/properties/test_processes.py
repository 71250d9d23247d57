"""A forked child computes what its parent did, and long lists and few rows are cut without changing a bit."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from longspan.engine.backends import load
from longspan.engine.call import attention
from longspan.engine.plan import Plan, plan
from longspan.layout import Layout
from longspan.nn.linear import linear, new_linear
from longspan.nn.quantized import QuantizedLinear
from longspan.patterns import Full, GlobalTokens, Window
from unit.tasks import tiny

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
@pytest.mark.parametrize("times", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_a_forked_child_computes_what_its_parent_did(times: int) -> None:
    made = plan(Window(40) | GlobalTokens(), Layout.packed([500], marked=[[0]]), heads=2)
    expected = attend(500, 500, made, threads=2)  # starts OpenMP threads, which a child does not inherit
    for _ in range(times):
        assert in_a_child(lambda: torch.equal(attend(500, 500, made, threads=2), expected))
    assert torch.equal(attend(500, 500, made, threads=2), expected)


def in_a_child(succeeds: Callable[[], bool]) -> bool:
    """What a forked child says of itself; one that hangs is killed, and has not succeeded."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if succeeds() else 1)
    return os.waitpid(child, 0)[1] == 0


def differentiated() -> Tensor:
    q, k, v = inputs(500, 500)
    made = plan(Window(40), Layout.packed([500]), heads=2)
    (gradient,) = torch.autograd.grad(attention(q.requires_grad_(), k, v, made).sum(), q)
    return gradient


def multiplied() -> Tensor:
    """Products and functions large enough that torch shares them among threads."""
    x = torch.linspace(-1, 1, 600 * 512).view(600, 512)
    layer = new_linear(512, 512)
    with torch.no_grad():
        layer.weight.copy_(x[:512])
        product: Tensor = torch.nn.functional.gelu(linear(layer, x)) + QuantizedLinear(layer)(x)
    return product


def encoded() -> Tensor:
    return torch.from_numpy(tiny.reader("longformer", "encode", overflow="window").encode(TEXTS))


TEXTS = list(tiny.CORPUS) * 40


@pytest.mark.parametrize("work", [differentiated, multiplied, encoded])
def test_a_forked_child_does_not_wait_for_its_parents_threads(work: Callable[[], Tensor]) -> None:
    torch.set_num_threads(2)
    expected = work()  # torch starts threads, which a child does not inherit
    for _ in range(5):
        assert in_a_child(lambda: torch.equal(work(), expected))
    assert in_a_child(lambda: in_a_child(lambda: torch.equal(work(), expected))), "a child's child"
    assert torch.get_num_threads() == 2


def test_a_child_forked_beside_busy_threads_computes() -> None:
    torch.set_num_threads(2)
    expected, done = multiplied(), threading.Event()

    def keep_busy() -> None:
        while not done.is_set():
            multiplied()

    busy = [threading.Thread(target=keep_busy) for _ in range(2)]
    for thread in busy:
        thread.start()
    try:
        for _ in range(5):
            assert in_a_child(lambda: torch.equal(multiplied(), expected))
    finally:
        done.set()
        for thread in busy:
            thread.join()


class Encoded(torch.utils.data.Dataset[Tensor]):
    """Vectors that the workers of a loader compute themselves."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Tensor:
        return encoded()[index]


def test_the_workers_of_a_loader_and_of_a_pool_encode() -> None:
    torch.set_num_threads(2)
    expected = encoded()
    loader = torch.utils.data.DataLoader(
        Encoded(), batch_size=2, num_workers=2, timeout=60, multiprocessing_context="fork"
    )
    assert torch.equal(torch.cat(list(loader)), expected[:4])
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for vectors in pool.map_async(_rows, range(3)).get(timeout=60):
            assert vectors == expected.tolist()


def _rows(_: int) -> list[list[float]]:
    rows: list[list[float]] = encoded().tolist()
    return rows


@native
def test_sixty_four_threads_share_the_kernels() -> None:
    torch.set_num_threads(2)
    made = plan(Window(40) | GlobalTokens(), Layout.packed([500], marked=[[0]]), heads=2)
    q, k, v = inputs(500, 500)
    expected, wrong = attention(q, k, v, made, backend="native"), []

    def work() -> None:
        for _ in range(5):
            if not torch.equal(attention(q, k, v, made, backend="native"), expected):
                wrong.append(threading.get_ident())

    threads = [threading.Thread(target=work) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    assert not wrong


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
