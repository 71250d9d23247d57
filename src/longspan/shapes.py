"""The alphabet of dimensions, used in every shape comment, and the array types.

B  batch            N  tokens (rows of a layout)     H  heads       D  head size
C  width (H * D)    K  keys                          T  tiles       J  intervals of a reach

A line that changes rank carries its shape: `# (N, C) -> (N, H, D)`.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.signedinteger[Any]]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
ByteArray: TypeAlias = npt.NDArray[np.uint8]
Vector: TypeAlias = np.ndarray[tuple[int], np.dtype[np.float32]]
Matrix: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.float32]]
SignedBytes: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int8]]
UnsignedBytes: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]
