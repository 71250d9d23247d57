"""Tokens as bytes: what comes back is close to what went in, and so are the products with a query."""

import numpy as np
import pytest

from longspan.errors import InputError
from longspan.nn.max_sim import max_sim
from longspan.search.token_codes import pack, quantize, unpack

DRAW = np.random.default_rng(1)


@pytest.mark.parametrize("width", [16, 64, 376, 13])
@pytest.mark.parametrize(("kind", "least"), [("1bit", 0.7), ("8bit", 0.999)])
def test_directions_and_weights_survive(width: int, kind: str, least: float) -> None:
    vectors, weights = DRAW.standard_normal((97, width)) * 5, DRAW.random(97)
    codes = pack(vectors, weights, kind)
    assert codes.shape == (97, 4 + (-(-width // 8) if kind == "1bit" else width))
    whole, scales, back = unpack(codes, width)
    decoded = whole * scales[:, None]
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (decoded * unit).sum(1) / np.linalg.norm(decoded, axis=1)
    assert np.median(cosines) > least
    np.testing.assert_allclose(back, weights, atol=1e-3)
    if kind == "1bit":
        assert ((whole > 0) == (vectors > 0)).all()
        np.testing.assert_allclose(np.abs(decoded).mean(1), np.abs(unit).mean(1), rtol=1e-3)


@pytest.mark.parametrize(("kind", "tolerance"), [("1bit", 0.15), ("8bit", 0.02)])
def test_the_largest_products_are_close_to_those_of_floats(kind: str, tolerance: float) -> None:
    width = 384
    tokens, queries = DRAW.standard_normal((300, width)), DRAW.standard_normal((7, width))
    tokens[::50] += 2 * queries[:6]  # some that match well
    tokens, queries = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (tokens, queries))
    starts = np.arange(0, 300, 50)
    codes, scales, _ = unpack(pack(tokens, np.ones(300), kind), width)
    maxima = max_sim(queries, codes, scales, starts, starts + 50)
    products = (tokens @ queries.T).reshape(6, 50, 7).max(1)
    if kind == "1bit":  # a sign shrinks every product about as much: their order counts
        factor = float((maxima * products).sum() / (products**2).sum())
        maxima = maxima / factor
    np.testing.assert_allclose(maxima, products, atol=tolerance)
    assert (maxima.argmax(0)[:6] == products.argmax(0)[:6]).all()


def test_a_vector_of_zeros_is_kept() -> None:
    for kind in ("1bit", "8bit"):
        whole, scales, weights = unpack(pack(np.zeros((1, 8)), np.ones(1), kind), 8)
        assert not (whole * scales[:, None]).any()
        assert weights.tolist() == [1]


def test_bytes_are_within_half_a_step() -> None:
    x = (
        np.random.default_rng(0).standard_normal((31, 383)).astype(np.float32)
        * np.logspace(-6, 6, 31)[:, None]
    )
    x[7] = 0
    tokens, scales = quantize(x)
    assert tokens.dtype == np.int8
    assert scales.dtype == np.float32
    assert tokens.min() >= -127
    assert (np.abs(tokens * scales[:, None].astype(np.float64) - x) <= 0.5001 * scales[:, None]).all()
    with pytest.raises(InputError, match="`x` must be finite"):
        quantize(np.array([[1.0, np.nan]]))
