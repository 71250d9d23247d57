"""Encode: one vector for each document, or one for each token."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longspan.errors import bad
from longspan.models.task import TaskModel
from longspan.nn.heads import POOLINGS, PoolingHead, pool
from longspan.shapes import FloatArray
from longspan.tasks.documents import Document
from longspan.tasks.run import Step, by_document, hidden
from longspan.tasks.table import one_of
from longspan.text.packing import Batch

OUTPUTS = {
    "sentence": ("sentence_embedding",),
    "sentence_embedding": ("sentence_embedding",),
    "tokens": ("token_embeddings",),
    "token_embeddings": ("token_embeddings",),
}
"""What can be asked for, and what sentence-transformers calls it."""
EVERYTHING = ("sentence_embedding", "token_embeddings")


def wanted(output: str | None) -> tuple[str, ...]:
    """What is to be computed: one kind of vectors, or for None everything."""
    return EVERYTHING if output is None else OUTPUTS[one_of("output", output, OUTPUTS)]


def pooling_of(model: TaskModel, pooling: str | None, normalise: bool | None) -> tuple[str, bool]:
    """How vectors are made: as asked, else as the checkpoint says, else the mean of the tokens as it is."""
    head = model.head if isinstance(model.head, PoolingHead) else None
    how = (head.pooling if head else "mean") if pooling is None else one_of("pooling", pooling, POOLINGS)
    if how == "salient" and (head is None or head.salience is None):
        raise bad("pooling", "another one for a model whose words have no salience", how)
    return how, (head.normalise if head else False) if normalise is None else normalise


def weights_of(model: TaskModel, batch: Batch, pooling: str) -> Tensor | None:
    """How much each token counts (N,), None if all count alike."""
    return model.head.weights(batch.ids, pooling) if isinstance(model.head, PoolingHead) else None


def states(pooling: str, kinds: Sequence[str]) -> Step:
    """For each piece (1 + n, C): its vector, if wanted, and then those of its tokens, if wanted."""

    def step(model: TaskModel, batch: Batch) -> Sequence[Tensor]:
        x = hidden(model, batch)
        none = [x[:0]] * len(batch.index)
        weights = weights_of(model, batch, pooling)
        pooled = pool(x, batch.layout, pooling, weights).split(1) if "sentence_embedding" in kinds else none
        tokens = by_document(x, batch) if "token_embeddings" in kinds else none
        return [torch.cat(both) for both in zip(pooled, tokens, strict=True)]

    return step


def decode(
    document: Document, found: Sequence[FloatArray], kinds: Sequence[str], pooling: str, normalise: bool
) -> dict[str, Any]:
    """The vectors of a document and what was read of it."""
    result: dict[str, Any] = {}
    first = int("sentence_embedding" in kinds)
    if first:
        vector = merged(document, [piece[0] for piece in found], pooling)
        result["sentence_embedding"] = normalised(vector) if normalise else vector
    if "token_embeddings" in kinds:
        result["token_embeddings"] = document.joined([piece[first:] for piece in found])[1]
    return result | document.reading._asdict()


def merged(document: Document, found: Sequence[FloatArray], pooling: str) -> FloatArray:
    """The vector (C,) of a document: the windows' mean by the tokens they speak for, or their maximum."""
    if pooling == "max":
        most: FloatArray = np.max(np.stack(found), axis=0)
        return most
    if len(found) == 1:
        return found[0]
    weights = np.array([piece.owned.sum() for piece in document.pieces], np.float32)
    mean: FloatArray = np.average(np.stack(found), axis=0, weights=weights)
    return mean


def normalised(vectors: FloatArray) -> FloatArray:
    """Vectors of length 1; a zero vector stays zero."""
    lengths: FloatArray = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(lengths, np.float32(1e-12))


def tensors(results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same results with tensors for arrays."""
    return [
        {
            key: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
            for key, value in one.items()
        }
        for one in results
    ]


def bare(results: Sequence[dict[str, Any]], kind: str, width: int, single: bool, as_tensor: bool) -> Any:
    """The vectors alone: of one text, stacked (B, C), or a list of (n, C)."""
    found = [one[kind] for one in (tensors(results) if as_tensor else results)]
    if single:
        return found[0]
    if kind == "token_embeddings":
        return found
    if as_tensor:
        return torch.stack(found) if found else torch.zeros(0, width)
    return np.stack(found) if found else np.zeros((0, width), np.float32)
