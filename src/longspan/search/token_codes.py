"""Tokens as bytes: a sign or a byte for each dimension, a scale, and how much the token counts."""

import numpy as np

from longspan.errors import bad
from longspan.nn.max_sim import Bytes
from longspan.shapes import ByteArray, FloatArray, Vector
from longspan.tasks.encode import normalized

KINDS = ("1bit", "8bit", "off")


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


def pack(vectors: FloatArray, weights: FloatArray, kind: str) -> ByteArray:
    """(N, C), (N,) -> (N, B): the directions of vectors, and weights; B = C / 8 + 4 or C + 4 bytes.

    A sign stands for the mean size of the vector's elements: their products with a query keep their order
    well enough, since what one dimension loses another gains.
    """
    unit = normalized(vectors)
    if kind == "1bit":
        codes = np.packbits(unit > 0, axis=1)
        scales = np.abs(unit).mean(axis=1)
    else:
        whole, scales = quantize(unit)
        codes = whole.view(np.uint8)
    tail = np.stack((scales, weights), axis=1).astype("<f2").view(np.uint8)
    return np.concatenate((codes, tail), axis=1)


def unpack(codes: ByteArray, width: int) -> tuple[Bytes, Vector, Vector]:
    """(N, B) -> (N, C) int8, and float32 scales and weights: a vector is nearly int8 * scale."""
    tail = np.ascontiguousarray(codes[:, -4:]).view("<f2").astype(np.float32)
    body = np.ascontiguousarray(codes[:, :-4])
    if body.shape[1] == width:
        whole = body.view(np.int8)
    else:
        whole = np.unpackbits(body, axis=1, count=width).view(np.int8)
        whole *= 2
        whole -= 1
    return whole, np.ascontiguousarray(tail[:, 0]), np.ascontiguousarray(tail[:, 1])
