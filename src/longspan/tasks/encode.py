"""Encode: one vector for each document, or one for each token."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.datasets.forms import PAIRS
from longspan.errors import bad, one_of
from longspan.families.backbone import Backbone
from longspan.families.seq2seq.model import Seq2Seq
from longspan.families.task_model import TaskModel
from longspan.metrics.regression import spearman
from longspan.nn.heads import POOLINGS, PoolingHead, pool
from longspan.pipeline import inputs
from longspan.pipeline.documents import Document, ReadingInfo, prepare
from longspan.pipeline.inputs import Inputs
from longspan.pipeline.labels import Labeling
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import Pipeline, Step, batched, by_document, head_output, hidden
from longspan.shapes import FloatArray, IntArray, Matrix, Vector
from longspan.tasks.base import Task
from longspan.tasks.losses import Loss, labels_of
from longspan.text.encoding import Encoding
from longspan.text.tokenizer import Tokenizer


class Embedding(ReadingInfo, total=False):
    """The vectors of a document and what was read of it: sentence_embedding (C,), token_embeddings (n, C).

    Where they are asked for, the tokens themselves, too: input_ids (n,).
    """

    sentence_embedding: Vector
    token_embeddings: Matrix
    input_ids: IntArray


class Vectors(NamedTuple):
    """How vectors are made."""

    kinds: tuple[str, ...]
    pooling: str
    normalize: bool
    dimensions: int | None = None
    "How many of them are kept; None: all."
    cut_first: bool = False
    "Whether they are normalized after that, not before."


EVERYTHING = ("sentence_embedding", "token_embeddings")
FEATURES = (*EVERYTHING, "input_ids")


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
    if isinstance(backbone, Seq2Seq):  # only the encoder is asked
        backbone.decoder.requires_grad_(False)
        backbone.word_embeddings.requires_grad_(True)
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


def loss_sum(model: TaskModel, batch: Batch, *, scale: float = 20.0) -> Loss:
    """The sum over the pairs of a batch, and how many these are.

    Wrong answers come from the same batch, so what a batch gives depends on its size: a batch of 32 pairs is
    not 32 batches of one.
    """
    others = labels_of(batch, Batch)
    pairs = len(batch.index)
    return Loss(loss(head_output(model, batch), head_output(model, others), scale=scale) * pairs, pairs)


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


def projects(model: TaskModel) -> bool:
    """Whether pooled vectors go through anything."""
    return isinstance(model.head, PoolingHead) and len(model.head.projections) > 0


@torch.no_grad()
def projected(model: TaskModel, vectors: FloatArray) -> FloatArray:
    """Pooled vectors (..., C) through what the checkpoint has behind the pooling, if anything."""
    if not isinstance(model.head, PoolingHead) or not projects(model):
        return vectors
    device = model.backbone.word_embeddings.weight.device
    rows = torch.from_numpy(np.atleast_2d(vectors)).float().to(device)
    found: FloatArray = model.head.project(rows).float().cpu().numpy()
    return found.reshape(*vectors.shape[:-1], -1)


def vector_size(model: TaskModel) -> int:
    """Numbers of a document's vector."""
    return model.head.outputs if isinstance(model.head, PoolingHead) else model.config.width


def decode(model: TaskModel, document: Document, outputs: Sequence[FloatArray], how: Vectors) -> Embedding:
    """The vectors of a document and what was read of it."""
    vectors: dict[str, Any] = {}
    first = int("sentence_embedding" in how.kinds)
    if first:
        vector = projected(model, merged(document, [piece[0] for piece in outputs], how.pooling))
        vector = vector[: how.dimensions] if how.cut_first else vector
        vectors["sentence_embedding"] = (normalized(vector) if how.normalize else vector)[: how.dimensions]
    if "token_embeddings" in how.kinds:
        rows, vectors["token_embeddings"] = document.joined([piece[first:] for piece in outputs])
        if "input_ids" in how.kinds:
            vectors["input_ids"] = document.encoding.ids[rows]
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
    pipeline: Pipeline, taken: Inputs, how: Vectors, before: str, options: Mapping[str, object]
) -> list[Embedding]:
    """The vectors of each text, with `before` put before it."""
    encodings = prompted(pipeline.tokenizer, taken, before)
    read = pipeline.read(ENCODE, taken, states(how.pooling, how.kinds), options, encodings)
    return [decode(pipeline.model, document, outputs, how) for document, outputs in read]


def prompted(tokenizer: Tokenizer, taken: Inputs, prompt: str) -> list[Encoding]:
    """The tokens of each text, with the prompt before it."""
    return tokenizer.encode_many([prompt + text for text in taken.items])


def partners(given: Labeling) -> list[Document]:
    """The text that belongs to each text, as a document."""
    names = [f"labels[{i}]" for i in range(len(given.labels))]
    texts = [inputs.string(name, text) for name, text in zip(names, given.labels, strict=True)]
    others = prepare(given.model, ENCODE, names, given.tokenizer.encode_many(texts), given.options)
    if any(len(document.pieces) > 1 for document in (*given.documents, *others)):
        repair = "Windows have no partners."
        raise bad("overflow", "'error' or 'truncate' where there are labels", "window", repair)
    return others


def with_partners(batch: Batch, targets: Sequence[Document], given: Labeling) -> Batch:
    """Labels are a batch of the partners, in the order of the batch."""
    (others,) = batched(given.model, targets, given.options, together=[0] * len(targets))
    return replace(batch, labels=others)


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
    loss_sum=loss_sum,
    decode=decode,
    metric=spearman,
    encode=prompted,
    targets=partners,
    form=PAIRS,
    attach=with_partners,
    label_tokens=lambda partner: len(partner.encoding),
)
