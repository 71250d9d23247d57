"""Heads that share keys, wide values, capped scores: neither threads nor batch mates change a bit."""

import pytest
import torch
from torch import Tensor

from conformance.rule import engines, running
from longspan.engine.call import attention
from longspan.engine.plan import plan
from longspan.layout import Layout
from longspan.patterns import Causal, GlobalTokens, Pattern, Window

HEADS, KEY_HEADS, SIZE, VALUE_SIZE = 6, 2, 24, 37
LENGTHS = (65, 400, 1, 131)
MARKED: tuple[list[int], ...] = ([0], [0, 300], [], [130])
PATTERNS = (
    Window(70) | GlobalTokens(),
    Window((9, 30, 80, 9, 9, 9), dilation=(4, 2, 1, 1, 1, 1)) & Causal(),
)
Results = list[Tensor]

pytestmark = [
    pytest.mark.parametrize("engine", [name for name in engines() if name.startswith("native")]),
    pytest.mark.parametrize("pattern", PATTERNS, ids=repr),
    pytest.mark.parametrize("softcap", [None, 2.0]),
]


def inputs() -> Results:
    draw, rows = torch.Generator().manual_seed(1), sum(LENGTHS)
    shapes = (HEADS, SIZE), (KEY_HEADS, SIZE), (KEY_HEADS, VALUE_SIZE), (HEADS, VALUE_SIZE)
    return [torch.randn(rows, *shape, generator=draw) for shape in shapes]


def run(
    pattern: Pattern, softcap: float | None, documents: list[int], given: Results, engine: str
) -> Results:
    """out and the gradients of q, k and v."""
    rows = Layout.packed([LENGTHS[d] for d in documents], marked=[MARKED[d] for d in documents])
    made = plan(pattern, rows, heads=HEADS)
    q, k, v = (x.clone().requires_grad_() for x in given[:3])
    with running(engine) as backend:
        out = attention(q, k, v, made, softcap=softcap, backend=backend)
        return [out.detach(), *torch.autograd.grad(out, (q, k, v), given[3])]


def test_the_number_of_threads_changes_nothing(pattern: Pattern, softcap: float | None, engine: str) -> None:
    before, found = torch.get_num_threads(), []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        found.append(run(pattern, softcap, [0, 1, 2, 3], inputs(), engine))
    torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_a_packed_document_is_computed_as_if_alone(
    pattern: Pattern, softcap: float | None, engine: str
) -> None:
    given = inputs()
    together = [x.split(LENGTHS) for x in run(pattern, softcap, [0, 1, 2, 3], given, engine)]
    for d in range(4):
        alone = run(pattern, softcap, [d], [x.split(LENGTHS)[d] for x in given], engine)
        assert all(torch.equal(own, mine[d]) for own, mine in zip(alone, together, strict=True))
