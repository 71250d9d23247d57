"""MaxSim: each token of a query is compared with every token of a passage (ColBERT, section 3.3)."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from longspan import native
from longspan.errors import bad
from longspan.shapes import FloatArray, IntArray, Matrix, Vector

Bytes: TypeAlias = npt.NDArray[np.int8]
WIDEST = 1 << 16
"""Elements of a token, so that sums of products fit into 32 bits."""


def max_sim(
    queries: FloatArray, tokens: Bytes | Matrix, scales: Vector | None, starts: IntArray, ends: IntArray
) -> Matrix:
    """(P, Q): for passage p and query token i the largest product of queries[i] with a token of the passage.

    queries: (Q, C); passage p is tokens starts[p] to ends[p], and -inf where there are none. tokens: (N, C)
    float32, computed in float32, NaN where a product is not finite; or int8 with scales: (N,) float32 as
    `quantize` gives them. Mapped files, too. Of int8 tokens the native core quantizes queries as well: an
    error of at most scale · (sum of |token|) · max |query| / 254, about as large as the tokens' own, and the
    same bits on every CPU. The number of threads never changes a bit.

    >>> tokens = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], np.float32)
    >>> starts, ends = np.array([0, 1, 3]), np.array([2, 3, 3])
    >>> maxima = max_sim(np.array([[1.0, 0.0], [0.0, 2.0]]), tokens, None, starts, ends)
    >>> np.rint(maxima * 10).tolist()
    [[10.0, 20.0], [6.0, 20.0], [-inf, -inf]]
    """
    queries = np.ascontiguousarray(queries, np.float32)
    starts, ends = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(ends, np.int64)
    _check(queries, tokens, scales, starts, ends)
    maxima = np.empty((len(starts), len(queries)), np.float32)
    if native.core() is None:
        return _portable(queries, tokens, scales, starts, ends, maxima)
    native.max_sim(queries, tokens, scales, starts, ends, into=maxima)
    return maxima


def _check(
    queries: Matrix, tokens: Bytes | Matrix, scales: Vector | None, starts: IntArray, ends: IntArray
) -> None:
    """Refuse what would lead the kernel outside of its arrays."""
    kind = np.dtype(np.float32 if scales is None else np.int8)
    if tokens.dtype != kind or tokens.ndim != 2 or not tokens.flags.c_contiguous:
        raise bad("tokens", f"a contiguous (N, C) array of {kind}", f"{tokens.dtype} {tokens.shape}")
    if scales is not None and not _is_list(scales, len(tokens)):
        raise bad("scales", f"{len(tokens)} contiguous float32", f"{scales.dtype} {scales.shape}")
    if not 1 <= tokens.shape[1] <= WIDEST:
        raise bad("tokens", f"1 to {WIDEST} wide", tokens.shape[1])
    if queries.ndim != 2 or queries.shape[1] != tokens.shape[1]:
        raise bad("queries", f"of shape (Q, {tokens.shape[1]})", queries.shape)
    if starts.ndim != 1 or starts.shape != ends.shape:
        raise bad("ends", f"as many as starts, {starts.shape}", ends.shape)
    for name, rows in (("starts", starts), ("ends", ends)):
        if rows.min(initial=0) < 0 or rows.max(initial=0) > len(tokens):
            worst = rows.min() if rows.min() < 0 else rows.max()
            raise bad(name, f"from 0 to the number of tokens, {len(tokens)}", int(worst))


def _is_list(scales: Vector, count: int) -> bool:
    return scales.dtype == np.float32 and scales.shape == (count,) and scales.flags.c_contiguous


def _portable(
    queries: Matrix,
    tokens: Bytes | Matrix,
    scales: Vector | None,
    starts: IntArray,
    ends: IntArray,
    maxima: Matrix,
) -> Matrix:
    """The same without the native core."""
    for out, start, end in zip(maxima, starts, ends, strict=True):
        products = tokens[start:end].astype(np.float32) @ queries.T  # (n, C) -> (n, Q)
        if scales is None:
            products[~np.isfinite(products)] = np.nan
        else:
            products *= scales[start:end, None]
        products.max(axis=0, initial=-np.inf, out=out)
    return maxima
