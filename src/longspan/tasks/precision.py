"""Vectors in fewer bits: a byte or a sign for each dimension, as sentence-transformers makes them."""

import logging
from typing import Literal

import numpy as np

from longspan.errors import bad, one_of
from longspan.shapes import Matrix, SignedBytes, UnsignedBytes, Vector

Precision = Literal["float32", "int8", "uint8", "binary", "ubinary"]
PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")
FEW = 100
"""Below so many vectors their ranges say little about those of others."""
log = logging.getLogger("longspan")


def check_precision(value: object) -> str:
    """The name of a precision, or the error that lists them; None is float32, as in sentence-transformers."""
    return "float32" if value is None else one_of("precision", value, PRECISIONS)


def quantized(vectors: Matrix, precision: str) -> Matrix | SignedBytes | UnsignedBytes:
    """(N, C) float32 in another precision: (N, C) bytes, or (N, ceil(C / 8)) with 8 signs in each.

    A byte divides the range that a dimension has in these vectors into 256 steps, so vectors of two calls
    cannot be compared. Signs can: 1 for what is above 0. "int8" and "binary" are "uint8" and "ubinary" less
    128.

    >>> quantized(np.array([[0.0], [127.5], [255.0]], np.float32), "uint8").tolist()
    [[0], [127], [255]]
    >>> quantized(np.array([[-1.0, 2.0, 0.5]], np.float32), "ubinary").tolist()
    [[96]]
    """
    if precision == "float32":
        return vectors
    if precision.endswith("binary"):
        signs = np.packbits(vectors > 0, axis=-1)
        return signs if precision == "ubinary" else (signs ^ 0x80).view(np.int8)
    steps = _steps(vectors, precision)
    return steps.astype(np.uint8) if precision == "uint8" else (steps - 128).astype(np.int8)


def one_alone(precision: str, count: int) -> None:
    """Refuse to make bytes of the range of a single vector."""
    if precision in ("int8", "uint8") and count == 1:
        repair = "Give several texts, use precision='binary', or quantize the vectors yourself, with ranges."
        raise bad("precision", "'float32', 'binary' or 'ubinary' for a single vector", precision, repair)


def _steps(vectors: Matrix, precision: str) -> Matrix:
    """Each dimension from its lowest value, 0, to its highest, 255, in whole steps."""
    one_alone(precision, len(vectors))
    if len(vectors) == 0:
        return vectors
    if len(vectors) < FEW:
        log.warning(
            "precision=%r takes the range of each dimension from only %d vectors.", precision, len(vectors)
        )
    low: Vector = vectors.min(axis=0)
    step = (vectors.max(axis=0) - low) / np.float32(255)
    steps: Matrix = np.clip(np.floor((vectors - low) / np.where(step == 0, np.float32(1), step)), 0, 255)
    return steps
