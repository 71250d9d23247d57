"""How alike vectors are: by cosine, by dot product, or by how near they lie."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.errors import bad
from longspan.shapes import Matrix, SignedBytes, UnsignedBytes, Vector

VectorLike = (
    Vector
    | Matrix
    | SignedBytes
    | UnsignedBytes
    | Tensor
    | Sequence[float]
    | Sequence[Vector]
    | Sequence[Tensor]
    | Sequence[Sequence[float]]
)
"""What users may give as one vector (C,) or many (N, C)."""
MAX_SIM = "MaxSim"
"""What folders call the similarity of tokens, which is none of vectors of texts."""


class _Compare(Protocol):
    def __call__(self, a: Tensor, b: Tensor, /) -> Tensor: ...


class Similarity(NamedTuple):
    """One way to compare vectors; more is more alike."""

    all_pairs: _Compare
    "(A, C), (B, C) -> (A, B)."
    row_by_row: _Compare
    "(A, C), (A, C) -> (A,)."


SIMILARITIES = {
    "cosine": Similarity(
        lambda a, b: F.normalize(a) @ F.normalize(b).T, lambda a, b: (F.normalize(a) * F.normalize(b)).sum(1)
    ),
    "dot": Similarity(lambda a, b: a @ b.T, lambda a, b: (a * b).sum(1)),
    "euclidean": Similarity(lambda a, b: -torch.cdist(a, b), lambda a, b: -(a - b).norm(dim=1)),
    "manhattan": Similarity(lambda a, b: -torch.cdist(a, b, p=1), lambda a, b: -(a - b).abs().sum(1)),
}
"""By the names that sentence-transformers gives them; distances are negative."""


def all_pairs(name: str, a: VectorLike, b: VectorLike) -> Tensor:
    """How alike each vector of `a` (A, C) is to each of `b` (B, C): (A, B), in float32.

    >>> all_pairs("manhattan", [0.0, 1.0], [[0.0, 1.0], [3.0, 0.0]]).tolist()
    [[-0.0, -4.0]]
    """
    return SIMILARITIES[name].all_pairs(*_matrices(a, b))


def row_by_row(name: str, a: VectorLike, b: VectorLike) -> Tensor:
    """How alike each vector of `a` (A, C) is to the one of `b` (A, C) in its place: (A,), in float32."""
    left, right = _matrices(a, b)
    if len(left) != len(right):
        raise bad("b", f"as many vectors as `a`, {len(left)}", len(right))
    return SIMILARITIES[name].row_by_row(left, right)


def _matrices(a: VectorLike, b: VectorLike) -> tuple[Tensor, Tensor]:
    left, right = _matrix("a", a), _matrix("b", b)
    if left.shape[1] != right.shape[1]:
        raise bad("b", f"vectors of the size of those of `a`, {left.shape[1]}", right.shape[1])
    return left, right


def _matrix(name: str, vectors: VectorLike) -> Tensor:
    """Vectors as (N, C) in float32, where they are."""
    if isinstance(vectors, Sequence) and len(vectors) and isinstance(vectors[0], Tensor):
        vectors = torch.stack([row for row in vectors if isinstance(row, Tensor)])
    given = vectors if isinstance(vectors, Tensor) else torch.as_tensor(np.asarray(vectors))
    matrix: Tensor = torch.atleast_2d(given).float()
    if matrix.ndim != 2:
        raise bad(name, "a vector (C,) or vectors (N, C)", tuple(matrix.shape))
    return matrix
