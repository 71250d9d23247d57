"""Query heads that share keys: every backend reads them in place and sums their gradients."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from conformance.rule import Case, engines, everywhere, judge, running
from longspan.engine.call import attention, attention_weights
from longspan.engine.labels import ClippedDistance
from longspan.engine.plan import plan
from longspan.layout import Layout
from longspan.patterns import BlockWindow, Causal, Full, GlobalTokens, Pattern, RandomBlocks, Window

ROWS = Layout.packed([1, 64, 131], marked=[[], [0], [0, 77]])
PATTERNS = (
    Window(9) | GlobalTokens(),
    Full() + Window(4, dilation=3),
    (BlockWindow(16) | GlobalTokens()) + RandomBlocks(16, 2, "uniform", seed=3),
)
MIXED = (
    Window((2, 70, 70, 9, 9, 5), dilation=(3, 1, 1, 2, 2, 1)),  # classes that cut groups in several ways
    Window((5, 5, 5, 70, 70, 70)) & Causal(),
)


@everywhere()
@pytest.mark.parametrize("group", [3, 5])
@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_groups_are_computed_right(pattern: Pattern, group: int, dtype: torch.dtype, engine: str) -> None:
    judge(Case(pattern, ROWS, group=group), dtype, engine)


@everywhere()
@pytest.mark.parametrize("group", [2, 3, 6])
@pytest.mark.parametrize("pattern", MIXED, ids=repr)
def test_heads_of_a_group_may_have_patterns_of_their_own(
    pattern: Pattern, group: int, dtype: torch.dtype, engine: str
) -> None:
    judge(Case(pattern, ROWS, group=group, size=17), dtype, engine)


@everywhere(torch.float32, torch.bfloat16)
@pytest.mark.parametrize("pattern", [PATTERNS[0], MIXED[0]], ids=repr)
def test_groups_go_with_terms_and_dropout(pattern: Pattern, dtype: torch.dtype, engine: str) -> None:
    terms = frozenset({"relative", "content", "table"})
    judge(
        Case(pattern, ROWS, labels=ClippedDistance(16), terms=terms, dropout=0.3, group=3, size=13),
        dtype,
        engine,
    )


@everywhere(torch.float32)
@pytest.mark.parametrize("group", [2, 7])
def test_a_few_rows_of_groups_read_thousands_of_keys(group: int, dtype: torch.dtype, engine: str) -> None:
    rows = Layout.packed([5000], marked=[[0, 4999]])
    judge(Case(Causal(), rows.take([4999, 17, 3001]), rows, size=16, group=group), dtype, engine)


@pytest.mark.parametrize("engine", engines())
def test_groups_are_those_of_torch(engine: str) -> None:
    q, k, v = heads_of(6, 2)
    made = plan(Full(), Layout.packed([83]), heads=6)
    a, b, c = (x.transpose(0, 1)[None] for x in (q, k, v))  # (N, H, D) -> (1, H, N, D)
    expected = scaled_dot_product_attention(a, b, c, enable_gqa=True)[0].transpose(0, 1)
    with running(engine) as name:
        torch.testing.assert_close(attention(q, k, v, made, backend=name), expected)


@pytest.mark.parametrize("engine", engines())
@pytest.mark.parametrize("pattern", [PATTERNS[0], MIXED[0]], ids=repr)
def test_a_group_is_as_good_as_copies_of_its_keys(pattern: Pattern, engine: str) -> None:
    q, k, v = heads_of(6, 2)
    made = plan(pattern, Layout.packed([70, 13], marked=[[0], []]), heads=6)
    k_copies, v_copies = (x.repeat_interleave(3, 1) for x in (k, v))
    with running(engine) as name:
        found = attention(q, k, v, made, backend=name, return_lse=True)
        expected = attention(q, k_copies, v_copies, made, backend=name, return_lse=True)
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


def test_weights_know_groups() -> None:
    q, k, _ = heads_of(6, 2)
    made = plan(Window(5), Layout.packed([70, 13]), heads=6)
    found = attention_weights(q, k, made, [3, 80])
    expected = attention_weights(q, k.repeat_interleave(3, 1), made, [3, 80])
    torch.testing.assert_close(found.probabilities, expected.probabilities)


def heads_of(queries: int, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(83, heads, 19, generator=draw) for heads in (queries, keys, keys))
    return q, k, v
