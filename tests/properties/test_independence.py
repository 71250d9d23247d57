"""A document's result depends on nothing but the document: not on its mates, padding, threads or history."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor

from conformance.rule import engines, running
from longspan.engine.call import attention
from longspan.engine.plan import plan
from longspan.layout import Layout
from longspan.patterns import BlockWindow, Causal, GlobalBlocks, GlobalTokens, Pattern, RandomBlocks, Window

HEADS, SIZE = 3, 32
LENGTHS = (65, 400, 1, 131)
MARKED: tuple[list[int], ...] = ([0], [0, 300], [], [130])
PATTERNS = (
    Window(70) | GlobalTokens(),
    Window((9, 30, 80), dilation=(4, 2, 1)) & Causal(),
    (BlockWindow(16) | GlobalBlocks(16)) + RandomBlocks(16, 2, "uniform", seed=3),
)

pytestmark = [
    pytest.mark.parametrize("engine", engines()),
    pytest.mark.parametrize("pattern", PATTERNS, ids=repr),
]


def random(rows: int, seed: int = 1) -> Tensor:
    """(4, N, H, D): q, k, v and the gradient of out."""
    return torch.randn(4, rows, HEADS, SIZE, generator=torch.Generator().manual_seed(seed))


def run(pattern: Pattern, rows: Layout, given: Tensor, engine: str) -> Tensor:
    """(4, N, H, D): out and the gradients of q, k and v."""
    made = plan(pattern, rows, heads=HEADS)
    q, k, v = (x.clone().requires_grad_() for x in given[:3])
    with running(engine) as backend:
        out = attention(q, k, v, made, backend=backend)
        return torch.stack([out.detach(), *torch.autograd.grad(out, (q, k, v), given[3])])


def assert_same(found: Tensor, expected: Tensor, engine: str) -> None:
    """Bit for bit where that is promised."""
    near = 0.0 if engine.startswith("native") else 1e-5
    torch.testing.assert_close(found, expected, rtol=near, atol=near)


def packed(documents: Sequence[int]) -> Layout:
    return Layout.packed([LENGTHS[d] for d in documents], marked=[MARKED[d] for d in documents])


def test_a_packed_document_is_computed_as_if_alone(pattern: Pattern, engine: str) -> None:
    given = random(sum(LENGTHS))
    together = run(pattern, packed(range(4)), given, engine).split(LENGTHS, dim=1)
    for document, (mine, own) in enumerate(zip(given.split(LENGTHS, dim=1), together, strict=True)):
        assert_same(run(pattern, packed([document]), mine, engine), own, engine)


def test_other_mates_in_another_order_change_nothing(pattern: Pattern, engine: str) -> None:
    given = random(sum(LENGTHS))
    mine = given.split(LENGTHS, dim=1)[1]
    expected = run(pattern, packed(range(4)), given, engine).split(LENGTHS, dim=1)[1]
    loud = 100 * random(131 + 65, seed=2)
    mates = torch.cat([loud[:, :131], mine, loud[:, 131:]], dim=1)
    assert_same(run(pattern, packed([3, 1, 0]), mates, engine)[:, 131 : 131 + 400], expected, engine)


def test_padding_changes_nothing(pattern: Pattern, engine: str) -> None:
    width = 200
    mask = torch.arange(width) < torch.tensor([[65], [131]])
    marked = torch.zeros(2, width, dtype=torch.bool)
    marked[0, 0] = marked[1, 130] = True
    given = random(2 * width)
    exists = mask.flatten()
    padded = run(pattern, Layout.padded(mask.numpy(), marked=marked.numpy()), given, engine)
    assert_same(padded[:, exists], run(pattern, packed([0, 3]), given[:, exists], engine), engine)
    assert not padded[:, ~exists].any()


def test_the_number_of_threads_changes_nothing(pattern: Pattern, engine: str) -> None:
    given, rows = random(sum(LENGTHS)), packed(range(4))
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2, 5) if engine.startswith("native") else (1, 2):
        torch.set_num_threads(threads)
        found.append(run(pattern, rows, given, engine))
    torch.set_num_threads(before)
    for other in found[1:]:
        assert_same(other, found[0], engine)


def test_earlier_calls_and_calls_at_the_same_time_change_nothing(pattern: Pattern, engine: str) -> None:
    given, rows = random(sum(LENGTHS)), packed(range(4))
    expected = run(pattern, rows, given, engine)
    run(pattern, packed([1]), 1e4 * random(400, seed=3), engine)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: run(pattern, rows, given, engine), range(4)):
            assert_same(found, expected, engine)
