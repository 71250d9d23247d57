"""Values may be wider or narrower than keys, in every backend."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from conformance.rule import Case, engines, everywhere, judge, running
from longspan.engine.call import attention
from longspan.engine.labels import ClippedDistance
from longspan.engine.plan import plan
from longspan.layout import Layout
from longspan.patterns import Causal, Full, GlobalTokens, Pattern, Window

ROWS = Layout.packed([1, 64, 131], marked=[[], [0], [0, 77]])
PATTERNS = (Window(9) | GlobalTokens(), Window((5, 70), dilation=(3, 1)) & Causal(), Full() + Window(4))
SIZES = ((7, 3), (5, 37), (64, 16), (13, 128), (1, 17), (23, 1))


@everywhere()
@pytest.mark.parametrize(("size", "value_size"), SIZES)
def test_every_value_size_is_computed_right(
    size: int, value_size: int, dtype: torch.dtype, engine: str
) -> None:
    judge(Case(PATTERNS[0], ROWS, size=size, value_size=value_size), dtype, engine)


@everywhere(torch.float32, torch.bfloat16)
@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("pattern", [PATTERNS[0], PATTERNS[2]], ids=repr)
def test_value_sizes_go_with_groups_terms_and_dropout(
    pattern: Pattern, group: int, dtype: torch.dtype, engine: str
) -> None:
    terms = frozenset({"relative", "content", "table"})
    labels = ClippedDistance(16)
    case = Case(pattern, ROWS, size=11, value_size=29, labels=labels, terms=terms, dropout=0.3, group=group)
    judge(case, dtype, engine)


@everywhere(torch.float32)
@pytest.mark.parametrize(("size", "value_size"), [(16, 5), (3, 32), (32, 48)])
def test_a_few_rows_read_thousands_of_values(
    size: int, value_size: int, dtype: torch.dtype, engine: str
) -> None:
    rows = Layout.packed([5000])
    case = Case(Causal(), rows.take([4999, 17, 3001]), rows, size=size, value_size=value_size, group=2)
    judge(case, dtype, engine)


@pytest.mark.parametrize("engine", engines())
def test_value_sizes_are_those_of_torch(engine: str) -> None:
    draw = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(2, 83, size, generator=draw) for size in (11, 11, 19))  # (H, N, D)
    expected = scaled_dot_product_attention(q[None], k[None], v[None])[0]
    made = plan(Full(), Layout.packed([83]), heads=2)
    with running(engine) as name:
        found = attention(q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1), made, backend=name)
    torch.testing.assert_close(found.transpose(0, 1), expected)
