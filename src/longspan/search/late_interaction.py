"""Late interaction: each token of a query is compared with every token of a passage (ColBERT's MaxSim)."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from longspan import native
from longspan.errors import bad
from longspan.shapes import FloatArray, IntArray, Matrix, Vector

Bytes: TypeAlias = npt.NDArray[np.int8]
WIDEST = 1 << 16
"""Elements of a token, so that sums of products fit into 32 bits."""


def quantize(x: FloatArray) -> tuple[Bytes, Vector]:
    """(N, C) -> (N, C) int8 from -127 to 127 and (N,) float32 scales: x is nearly int8 * scale.

    >>> tokens, scales = quantize(np.array([[0.5, -1.0], [0.0, 0.0]]))
    >>> tokens.tolist(), (scales * 127).tolist()
    ([[64, -127], [0, 0]], [1.0, 0.0])
    """
    largest = np.abs(x).max(axis=1, initial=0.0).astype(np.float32)
    if not np.isfinite(largest).all():
        raise bad("x", "finite", float(largest.max()))
    steps = np.divide(127, largest, out=np.zeros_like(largest), where=largest > 1e-30)
    return np.rint(x * steps[:, None]).astype(np.int8), largest / np.float32(127)


def max_sim(queries: FloatArray, tokens: Bytes, scales: Vector, starts: IntArray, ends: IntArray) -> Matrix:
    """(P, Q): for passage p and query token i the largest product of queries[i] with a token of the passage.

    queries: (Q, C); tokens: (N, C) int8 and scales: (N,) float32 as `quantize` gives them, mapped files too;
    passage p is tokens starts[p] to ends[p], and -inf where there are none. The native core quantizes queries
    as well: an error of at most scale · (sum of |token|) · max |query| / 254, about as large as the tokens'
    own. Its results have the same bits on every CPU and with any number of threads.

    >>> tokens, scales = quantize(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]))
    >>> starts, ends = np.array([0, 1, 3]), np.array([2, 3, 3])
    >>> maxima = max_sim(np.array([[1.0, 0.0], [0.0, 2.0]]), tokens, scales, starts, ends)
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


def _check(queries: Matrix, tokens: Bytes, scales: Vector, starts: IntArray, ends: IntArray) -> None:
    """Refuse what would lead the kernel outside of its arrays."""
    if tokens.dtype != np.int8 or tokens.ndim != 2 or not tokens.flags.c_contiguous:
        raise bad("tokens", "a contiguous (N, C) array of int8", f"{tokens.dtype} {tokens.shape}")
    if scales.dtype != np.float32 or scales.shape != tokens.shape[:1] or not scales.flags.c_contiguous:
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


def _portable(
    queries: Matrix, tokens: Bytes, scales: Vector, starts: IntArray, ends: IntArray, maxima: Matrix
) -> Matrix:
    """The same without the native core."""
    for out, start, end in zip(maxima, starts, ends, strict=True):
        rows = tokens[start:end].astype(np.float32)
        products = rows @ queries.T * scales[start:end, None]  # (n, C) -> (n, Q)
        products.max(axis=0, initial=-np.inf, out=out)
    return maxima
