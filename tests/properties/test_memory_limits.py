"""Too little memory is an error that says so: no crash, no hang, and the next call is served."""

import gc
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from longspan import native
from longspan.engine.call import attention
from longspan.engine.plan import plan
from longspan.layout import Layout
from longspan.patterns import Full, GlobalTokens, Window

built = pytest.mark.skipif(native.core() is None, reason="the native core is not built")
ROWS = 1000


def attended() -> Callable[[], list[Tensor]]:
    """Forward and backward, with a tile for each few rows and with long lists."""
    rows = Layout.packed([ROWS], marked=[[0]])
    plans = [plan(pattern, rows, heads=4) for pattern in (Window(64) | GlobalTokens(), Full())]
    inputs = [torch.randn(ROWS, 4, 64, requires_grad=True) for _ in "qkv"]

    def work() -> list[Tensor]:
        outputs = [attention(*inputs, made, backend="native") for made in plans]
        return [*outputs, *torch.autograd.grad(outputs[0].sum(), inputs)]

    return work


def multiplied() -> Callable[[], list[Tensor]]:
    x, weight, scales = torch.randn(ROWS, 512), torch.randn(512, 512), torch.ones(512)
    whole = (weight * 30).to(torch.int8)

    def work() -> list[Tensor]:
        results = []
        for stored, steps in ((weight, None), (whole, scales)):
            into = torch.empty(ROWS, 512)
            native.linear(x, stored, None, scales=steps, plus=None, gelu=True, into=into)
            results.append(into)
        return results

    return work


def size() -> int:
    """Bytes of address space in use."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def outcome(work: Callable[[], list[Tensor]], spare: int, expected: list[Tensor]) -> str:
    """What happens in a child, which has one thread, with only so many more bytes; then without the limit."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        verdict = 3
        try:
            resource.setrlimit(resource.RLIMIT_AS, (size() + spare, hard))
            verdict = 0 if same(work(), expected) else 2
        except (MemoryError, RuntimeError) as error:
            told = isinstance(error, MemoryError) or "memory" in str(error)
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
            gc.collect()
            verdict = 1 if told and same(work(), expected) else 2
        finally:
            os._exit(verdict)
    status = os.waitpid(child, 0)[1]
    return {0: "served", 256: "refused", 512: "wrong"}.get(status, f"died with status {status}")


def same(found: list[Tensor], expected: list[Tensor]) -> bool:
    return all(map(torch.equal, found, expected))


@built
@pytest.mark.parametrize("make", [attended, multiplied])
def test_at_whatever_allocation_memory_ends_it_is_told_and_nothing_is_broken(
    make: Callable[[], Callable[[], list[Tensor]]],
) -> None:
    work = make()
    expected = work()
    outcomes = [outcome(work, spare, expected) for spare in (0, *(1 << k for k in range(15, 30, 2)))]
    assert set(outcomes) <= {"served", "refused"}, outcomes
    assert outcomes[0] == "refused"
    assert outcomes[-1] == "served"
