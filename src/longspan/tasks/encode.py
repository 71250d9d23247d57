"""Encode: one vector for each document, or one for each token."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.errors import bad, one_of
from longspan.families.backbone import Backbone
from longspan.families.task_model import TaskModel
from longspan.nn.heads import POOLINGS, PoolingHead, pool
from longspan.pipeline import inputs
from longspan.pipeline.documents import Document, ReadingInfo
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import Pipeline, Results, Step, by_document, hidden
from longspan.shapes import FloatArray, Matrix, Vector
from longspan.tasks.base import Task
from longspan.tasks.metrics import spearman


class Embedding(ReadingInfo, total=False):
    """The vectors of a document and what was read of it: sentence_embedding (C,), token_embeddings (n, C)."""

    sentence_embedding: Vector
    token_embeddings: Matrix


class Vectors(NamedTuple):
    """How vectors are made."""

    kinds: tuple[str, ...]
    pooling: str
    normalize: bool


EVERYTHING = ("sentence_embedding", "token_embeddings")


def pooling_of(model: TaskModel, pooling: str | None, normalize: bool | None) -> tuple[str, bool]:
    """How vectors are made: as asked, else as the checkpoint says, else the mean of the tokens as it is."""
    head = model.head if isinstance(model.head, PoolingHead) else None
    how = (head.pooling if head else "mean") if pooling is None else one_of("pooling", pooling, POOLINGS)
    if how == "sif" and (head is None or head.sif is None):
        raise bad("pooling", "another one for a model without SIF weights", how)
    return how, (head.normalize if head else False) if normalize is None else normalize


def weights_of(model: TaskModel, batch: Batch, pooling: str) -> Tensor | None:
    """How much each token counts (N,), None if all count alike."""
    return model.head.weights(batch.ids, pooling) if isinstance(model.head, PoolingHead) else None


def build(backbone: Backbone, *, labels: int = 2, **pooling: Any) -> TaskModel:
    """A model with a new head."""
    c = backbone.config.encoder
    words = c.vocab_size if c.pools_by_sif and not backbone.config.has_decoder else None
    return TaskModel(backbone, PoolingHead(c.width, words=words, **pooling), "Model")


def loss(vectors: Tensor, other: Tensor, *, scale: float = 20.0) -> Tensor:
    """Cross-entropy of finding the partner of each vector (B, C) among all `others`, by cosine.

    The loss of sentence-transformers for pairs: all other rows of the batch are wrong answers.

    >>> float(loss(torch.eye(3), torch.eye(3)) < 0.01)
    1.0
    """
    if vectors.shape != other.shape:
        raise bad("other", f"of shape {tuple(vectors.shape)}", tuple(other.shape))
    cosines = F.normalize(vectors) @ F.normalize(other).T
    return F.cross_entropy(scale * cosines, torch.arange(len(vectors), device=vectors.device))


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


def decode(document: Document, outputs: Sequence[FloatArray], how: Vectors) -> Embedding:
    """The vectors of a document and what was read of it."""
    vectors: dict[str, Any] = {}
    first = int("sentence_embedding" in how.kinds)
    if first:
        vector = merged(document, [piece[0] for piece in outputs], how.pooling)
        vectors["sentence_embedding"] = normalized(vector) if how.normalize else vector
    if "token_embeddings" in how.kinds:
        vectors["token_embeddings"] = document.joined([piece[first:] for piece in outputs])[1]
    result: Embedding = {**vectors, **document.reading.info()}  # type: ignore[typeddict-item]
    return result


def merged(document: Document, outputs: Sequence[FloatArray], pooling: str) -> FloatArray:
    """The vector (C,) of a document: the windows' mean by the tokens they speak for, or their maximum."""
    if pooling == "max":
        most: FloatArray = np.max(np.stack(outputs), axis=0)
        return most
    if len(outputs) == 1:
        return outputs[0]
    weights = np.array([piece.owned.sum() for piece in document.pieces], np.float32)
    mean: FloatArray = np.average(np.stack(outputs), axis=0, weights=weights)
    return mean


def normalized(vectors: FloatArray) -> FloatArray:
    """Vectors of length 1; a zero vector stays zero."""
    lengths: FloatArray = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.maximum(lengths, np.float32(1e-12))


def encode(
    pipeline: Pipeline, texts: object, how: Vectors, before: str, options: Mapping[str, object]
) -> Results[Embedding]:
    """The vectors of each text, with `before` put before it."""
    taken = inputs.texts("texts", texts)
    encodings = pipeline.tokenizer.encode_many([before + text for text in taken.items])
    read = pipeline.read(ENCODE, taken, states(how.pooling, how.kinds), options, encodings)
    return Results([decode(document, outputs, how) for document, outputs in read], taken.single)


def stacked(results: Sequence[Embedding], width: int) -> Matrix:
    """The vectors of documents, (B, C)."""
    rows = [one["sentence_embedding"] for one in results]
    return np.stack(rows) if rows else np.zeros((0, width), np.float32)


ENCODE = Task(
    name="encode",
    aliases=("feature-extraction", "sentence-similarity"),
    architecture="Model",
    build=build,
    inputs=partial(inputs.texts, "texts"),
    loss=loss,
    decode=decode,
    metric=spearman,
)
