"""Capped scores: softcap * tanh(score / softcap), before tables, counts and masks, in every backend."""

import pytest
import torch

from conformance.rule import Case, engines, everywhere, judge, running
from longspan.engine.backends import load
from longspan.engine.backends.base import Problem
from longspan.engine.call import attention, attention_weights
from longspan.engine.labels import ClippedDistance
from longspan.engine.plan import plan
from longspan.errors import BackendError
from longspan.layout import Layout
from longspan.patterns import Causal, Full, GlobalTokens, Pattern, Window

ROWS = Layout.packed([1, 64, 131], marked=[[], [0], [0, 77]])
PATTERNS = (Window(9) | GlobalTokens(), Window((5, 70), dilation=(3, 1)) & Causal(), Full() + Window(4))
LABELS = ClippedDistance(16)


@everywhere()
@pytest.mark.parametrize("softcap", [0.5, 2.0, 50.0])
@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_a_softcap_is_computed_right(
    pattern: Pattern, softcap: float, dtype: torch.dtype, engine: str
) -> None:
    judge(Case(pattern, ROWS, size=17, softcap=softcap), dtype, engine)


@everywhere(torch.float32)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_flat_and_saturated_scores_are_computed_right(scale: float, dtype: torch.dtype, engine: str) -> None:
    judge(Case(PATTERNS[0], ROWS, size=17, scale=scale, softcap=5.0), dtype, engine)


@everywhere(torch.float32, torch.bfloat16)
def test_a_softcap_goes_with_groups_values_tables_and_dropout(dtype: torch.dtype, engine: str) -> None:
    terms = frozenset({"table"})
    case = Case(
        PATTERNS[0],
        ROWS,
        size=13,
        value_size=29,
        labels=LABELS,
        terms=terms,
        dropout=0.3,
        group=3,
        softcap=1.5,
    )
    judge(case, dtype, engine)


@everywhere(torch.float32)
def test_a_few_rows_over_thousands_of_keys_are_capped(dtype: torch.dtype, engine: str) -> None:
    rows = Layout.packed([5000])
    judge(Case(Causal(), rows.take([4999, 17, 3001]), rows, size=16, softcap=2.0), dtype, engine)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("engine", ["tiled", "dense"])
@pytest.mark.parametrize("chosen", ["relative", "relative content table"])
def test_relative_keys_are_capped_and_tables_are_not(chosen: str, engine: str, dtype: torch.dtype) -> None:
    case = Case(PATTERNS[0], ROWS, labels=LABELS, terms=frozenset(chosen.split()), softcap=1.5)
    judge(case, dtype, engine)


@pytest.mark.parametrize("engine", engines())
def test_a_softcap_is_gemmas(engine: str) -> None:
    draw = torch.Generator().manual_seed(3)
    q, k, v = torch.randn(3, 2, 83, 11, generator=draw)  # (H, N, D)
    weights = q @ k.transpose(1, 2) * 0.7
    weights = (torch.tanh(weights / 2.5) * 2.5).masked_fill(torch.ones(83, 83).triu(1).bool(), -torch.inf)
    expected = weights.softmax(-1) @ v
    made = plan(Causal(), Layout.packed([83]), heads=2)
    q, k, v = (x.transpose(0, 1) for x in (q, k, v))
    with running(engine) as name:
        found = attention(q, k, v, made, scale=0.7, softcap=2.5, backend=name)
    torch.testing.assert_close(found.transpose(0, 1), expected)


@pytest.mark.parametrize("engine", engines())
def test_what_may_not_be_seen_does_not_hurt_a_capped_row(engine: str) -> None:
    draw = torch.Generator().manual_seed(3)
    q, k, v = torch.randn(3, 83, 2, 16, generator=draw)
    k[40] = torch.nan
    made = plan(Causal(), Layout.packed([83]), heads=2)
    with running(engine) as name:
        out = attention(q, k, v, made, softcap=2.5, backend=name)
    assert bool(out[:40].isfinite().all())
    assert bool(out[40:].isnan().all())


def test_weights_are_capped() -> None:
    draw = torch.Generator().manual_seed(3)
    q, k, v = torch.randn(3, 83, 2, 11, generator=draw)
    made = plan(Full(), Layout.packed([83]), heads=2)
    weights = attention_weights(q, k, made, [5], softcap=0.5).probabilities[0]  # (H, K)
    expected = attention(q, k, v, made, softcap=0.5)[5]
    torch.testing.assert_close(torch.einsum("hk,khd->hd", weights, v), expected)


@pytest.mark.parametrize("softcap", [1.0, 1e-30, 1e30])
def test_the_native_kernel_says_what_it_does_not_cap(softcap: float) -> None:
    backend = load("native")
    x = torch.randn(83, 2, 11)
    made = plan(Window(3), Layout.packed([83]), heads=2, labels=LABELS)
    relative = torch.randn(LABELS.size, 2, 11) if softcap == 1.0 else None
    problem = Problem(x, x, x, made.arrays, 1.0, relative, softcap=softcap)
    reasons = backend.refuses(problem)
    if len(reasons) == 1 and "installed" in reasons[0]:
        pytest.skip("the native core is not built")
    assert reasons == [
        "does not cap scores that have relative keys"
        if softcap == 1.0
        else f"takes a softcap from 1e-20 to 1e+20, but it is {softcap:g}"
    ]
    if softcap != 1.0:
        with pytest.raises(BackendError, match="takes a softcap from"):
            attention(x, x, x, made, softcap=softcap, backend="native")
    assert attention(x, x, x, made, softcap=softcap).shape == x.shape
