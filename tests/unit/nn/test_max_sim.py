"""MaxSim: near float64, the same bits everywhere, and nothing is read outside of its arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from helpers import without_native
from longspan import native
from longspan.errors import InputError
from longspan.nn.max_sim import max_sim
from longspan.search.token_codes import quantize
from longspan.shapes import FloatArray

Case = tuple[FloatArray, Any, Any, Any, Any]
WIDTHS = (1, 2, 7, 63, 64, 383, 384, 1031)


def drawn(width: int, queries: int, rows: int = 97, passages: int = 31) -> Case:
    """Queries, tokens and passages, some of which overlap and some of which are empty."""
    draw = np.random.default_rng(width)
    tokens, scales = quantize(draw.standard_normal((rows, width)).astype(np.float32))
    ends = draw.integers(0, rows + 1, (2, passages))
    starts, ends = ends.min(axis=0), ends.max(axis=0)
    ends[::5] = starts[::5]
    return draw.standard_normal((queries, width)).astype(np.float32), tokens, scales, starts, ends


def exact(case: Case) -> tuple[FloatArray, FloatArray]:
    """The definition in float64, and the documented bound of the error."""
    queries, tokens, scales, starts, ends = case
    products = queries.astype(np.float64) @ (tokens * scales[:, None].astype(np.float64)).T  # (Q, N)
    sizes = np.abs(tokens.astype(np.float64)).sum(1) * scales  # (N,)
    bounds = np.abs(queries).max(1, initial=0)[:, None] * sizes / 254 + 1e-5 * sizes
    passages = list(zip(starts, ends, strict=True))
    maxima, errors = np.full((2, len(starts), len(queries)), -np.inf)
    for p, (start, end) in enumerate(passages):
        maxima[p] = products[:, start:end].max(1, initial=-np.inf)
        errors[p] = bounds[:, start:end].max(1, initial=0)
    return maxima, errors


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("queries", [1, 4, 16, 17, 40])
def test_maxima_are_within_the_bound_and_every_target_gives_the_same_bits(width: int, queries: int) -> None:
    case = drawn(width, queries)
    expected, bound = exact(case)
    results = [max_sim(*case)]
    for target in native.targets():
        with native.force_target(target):
            results.append(max_sim(*case))
    some = expected > -np.inf
    for result in results:
        assert result.tobytes() == results[0].tobytes()
        assert (result[~some] == -np.inf).all()
        assert (np.abs(result[some] - expected[some]) <= bound[some]).all()
    assert not some.all()


def floats(case: Case) -> Case:
    """The same passages of tokens that are not quantized."""
    queries, tokens, scales, starts, ends = case
    return queries, (tokens * scales[:, None]).astype(np.float32), None, starts, ends


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("queries", [1, 4, 16, 17, 40])
def test_tokens_in_float32_are_as_exact_as_a_plain_product_on_every_target(width: int, queries: int) -> None:
    case = drawn(width, queries)
    q, tokens, _, starts, ends = floats(case)
    products = tokens.astype(np.float64) @ q.T.astype(np.float64)
    plain = np.zeros_like(products, np.float32)
    for column in range(width):  # one after the other, as a sum in float32 is defined
        plain += np.outer(tokens[:, column], q[:, column])
    worst = 2 * np.abs(plain - products).max() + np.spacing(np.abs(products).max(), dtype=np.float32)
    expected = np.array([products[a:b].max(0, initial=-np.inf) for a, b in zip(starts, ends, strict=True)])
    some = expected > -np.inf
    for target in [None, *native.targets()]:
        with native.force_target(target):
            result = max_sim(q, tokens, None, starts, ends)
        assert (result[~some] == -np.inf).all()
        assert np.abs(result[some] - expected[some]).max() <= worst


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("portable", [False, True])
def test_a_product_that_is_not_finite_is_nan_and_spoils_no_other(
    value: float, portable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if portable:
        without_native(monkeypatch)
    tokens, queries = np.ones((40, 5), np.float32), np.ones((3, 5), np.float32)
    tokens[17, 2] = value
    starts, ends = np.array([0, 15, 18]), np.array([17, 20, 40])
    assert np.isnan(max_sim(queries, tokens, None, starts, ends)).tolist() == [
        [False] * 3,
        [True] * 3,
        [False] * 3,
    ]
    tokens[17, 2], queries[1, 4] = 1, value
    found = max_sim(queries, tokens, None, starts, ends)
    assert np.isnan(found).tolist() == [[False, True, False]] * 3
    assert (found[:, 0] == 5).all()


@pytest.mark.parametrize("form", [lambda case: case, floats])
def test_threads_change_nothing(form: Callable[[Case], Case]) -> None:
    case = form(drawn(384, 13, rows=5003, passages=211))
    threads = torch.get_num_threads()
    try:
        results = []
        for count in (1, 2, 3, 7):
            torch.set_num_threads(count)
            results.append(max_sim(*case).tobytes())
    finally:
        torch.set_num_threads(threads)
    assert len(set(results)) == 1


@pytest.mark.parametrize("width", [1, 7, 384])
def test_without_the_core_the_result_is_the_same_but_for_rounding(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_native(monkeypatch)
    case = drawn(width, 5)
    for form in (case, floats(case)):
        np.testing.assert_allclose(max_sim(*form), exact(case)[0], rtol=1e-5, atol=1e-4)


def test_nothing_to_compare_is_no_error() -> None:
    queries, tokens, scales, starts, ends = drawn(7, 3)
    none = np.zeros(0, np.int64)
    assert max_sim(queries, tokens, scales, none, none).shape == (0, 3)
    assert max_sim(queries[:0], tokens, scales, starts, ends).shape == (31, 0)
    assert (max_sim(queries, tokens[:0], scales[:0], none[:1], none[:1])).shape == (0, 3)
    assert (max_sim(queries, tokens[:0], scales[:0], starts * 0, ends * 0) == -np.inf).all()
    assert (max_sim(queries, tokens, scales, ends + 0, starts + 0)[starts < ends] == -np.inf).all()
    assert not max_sim(queries * 0, tokens, scales, starts * 0, starts * 0 + 1).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda q, t, s, a, b: (q[:, 1:], t, s, a, b),
            r"`queries` must be of shape \(Q, 7\), but is \(3, 6\)",
        ),
        (lambda q, t, s, a, b: (q[0], t, s, a, b), "`queries` must be"),
        (lambda q, t, s, a, b: (q, t.astype(np.int16), s, a, b), "`tokens` must be a contiguous"),
        (lambda q, t, s, a, b: (q, t[:, ::2], s, a, b), "`tokens` must be a contiguous"),
        (lambda q, t, s, a, b: (q, t[0], s, a, b), "`tokens` must be a contiguous"),
        (
            lambda q, t, s, a, b: (q, t, None, a, b),
            r"`tokens` must be a contiguous \(N, C\) array of float32",
        ),
        (lambda q, t, s, a, b: (q[:, :0], np.zeros((97, 0), np.int8), s, a, b), "`tokens` must be 1 to"),
        (lambda q, t, s, a, b: (q, t, s[1:], a, b), "`scales` must be 97 contiguous float32"),
        (lambda q, t, s, a, b: (q, t, s.astype(np.float64), a, b), "`scales` must be 97 contiguous float32"),
        (lambda q, t, s, a, b: (q, t, s, a[1:], b), "`ends` must be as many as starts"),
        (lambda q, t, s, a, b: (q, t, s, a - 98, b), "`starts` must be from 0"),
        (lambda q, t, s, a, b: (q, t, s, a, b + 98), "`ends` must be from 0 to the number of tokens, 97"),
        (lambda q, t, s, a, b: (q, t, s, a + 98, b), "`starts` must be from 0"),
        (lambda q, t, s, a, b: (q, t, s, a, b - 98), "`ends` must be from 0"),
    ],
)
def test_what_would_lead_outside_of_an_array_is_refused(change: Callable[..., Case], message: str) -> None:
    with pytest.raises(InputError, match=message):
        max_sim(*change(*drawn(7, 3)))
