"""Classify: labels for a whole document."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypedDict

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.datasets.forms import TEXTS
from longspan.errors import bad, no_tensor, one_of, whole
from longspan.families.backbone import Backbone
from longspan.families.seq2seq.lm import Seq2SeqTaskModel
from longspan.families.task_model import TaskModel
from longspan.metrics.classification import accuracy
from longspan.metrics.regression import spearman
from longspan.nn.heads import FirstTokenHead, LastTokenHead
from longspan.pipeline import inputs
from longspan.pipeline.documents import Document, Found, ReadingInfo, ReadingRules
from longspan.pipeline.labels import Labeling
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import Pipeline, Results, head_output
from longspan.shapes import FloatArray
from longspan.tasks import cross_encoder
from longspan.tasks.base import Task
from longspan.tasks.losses import Loss, by_class, cross_entropy, labels_of, weighted_mean

PROBLEMS = ("single", "multi", "regression")
"""One label of several, any number of labels, or numbers."""


class LabelScore(TypedDict):
    """A label and how likely it is."""

    label: str
    score: float


class Classification(LabelScore, ReadingInfo):
    """The likeliest label of a document, and what was read of it."""


def build(backbone: Backbone, *, labels: int) -> TaskModel:
    """A model with a new head."""
    c, ending = backbone.config.encoder, "ForSequenceClassification"
    if backbone.config.has_decoder:
        head = LastTokenHead(c.width, labels, act="tanh", dropout=c.dropout, drop_first=True)
        return Seq2SeqTaskModel(backbone, head, ending)
    act, drop = c.activation_in_head(ending), c.head_drops_input
    own = c.own_head(ending, labels, backbone.word_embeddings)
    first = FirstTokenHead(c.width, labels, act=act, dropout=c.dropout, drop_first=drop)
    return TaskModel(backbone, own or first, ending)


def step(model: TaskModel, batch: Batch) -> Sequence[Tensor]:
    """The logits (L,) of each piece."""
    return head_output(model, batch).unbind()


def loss(
    logits: Tensor, labels: Tensor, problem: str | None = None, *, class_weights: Tensor | None = None
) -> Tensor:
    """The loss of the logits (documents, L), by the kind of problem.

    Hugging Face's rules: cross-entropy for whole numbers (documents,), binary cross-entropy for a table
    (documents, L) of zeros and ones where labels do not exclude each other, squared error for numbers.
    `class_weights` (L,) are torch's: `weight` of cross-entropy, whose mean is divided by the weights of the
    labels, and `pos_weight` of binary cross-entropy.

    >>> loss(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
    tensor(0.6931)
    """
    return weighted_mean(*_summed(logits, labels, problem, class_weights))


def loss_sum(
    model: TaskModel, batch: Batch, *, problem: str | None = None, class_weights: Tensor | None = None
) -> Loss:
    """The sum over the documents of a batch, and how many numbers (or what weights) were added."""
    given = labels_of(batch, Tensor), problem or model.problem
    total, weight = _summed(head_output(model, batch), *given, class_weights)
    return Loss(total, float(weight))


def _summed(
    logits: Tensor, labels: Tensor, problem: str | None, class_weights: Tensor | None
) -> tuple[Tensor, Tensor]:
    if not isinstance(labels, Tensor):
        raise no_tensor("labels", labels)
    if problem is None:
        several = "multi" if labels.is_floating_point() else "single"
        problem = "regression" if logits.shape[1] == 1 else several
    if one_of("problem", problem, PROBLEMS) == "single":
        return cross_entropy(logits, labels, class_weights)
    if labels.numel() != logits.numel():
        raise bad("labels", f"of shape {tuple(logits.shape)}", tuple(labels.shape))
    targets, numbers = labels.to(logits.dtype).view_as(logits), torch.tensor(logits.numel())
    if problem == "multi":
        weights = by_class(class_weights, logits)
        losses = F.binary_cross_entropy_with_logits(logits, targets, reduction="none", pos_weight=weights)
    elif class_weights is not None:
        raise bad("class_weights", "None for a regression", "given", "Numbers have no classes.")
    else:
        losses = F.mse_loss(logits, targets, reduction="none")
    return losses.sum(dtype=torch.promote_types(losses.dtype, torch.float32)), numbers


def targets(given: Labeling) -> list[Any]:
    """A class for each text, by name or number; several in a list where they do not exclude each other; or a
    number, or one for each class, for a regression.
    """
    width = len(given.classes)

    def target(label: Any, document: Document) -> int | float | list[float]:
        several = isinstance(label, (list, tuple, np.ndarray))
        if given.problem == "regression" or (given.problem is None and width == 1):
            return [float(number) for number in label] if several else float(label)
        if not several:
            return given.number(label)
        chosen = {given.number(one) for one in label}
        return [float(number in chosen) for number in range(width)]

    return given.by_piece(target)


def probabilities(logits: FloatArray, problem: str | None) -> FloatArray:
    """(windows, L) logits as probabilities, by Hugging Face's rules.

    Softmax; sigmoid for a single label or labels that do not exclude each other; numbers stay as they are.
    """
    if problem == "regression":
        return logits
    rows = torch.from_numpy(logits)
    alone = problem == "multi" or logits.shape[-1] == 1
    return (rows.sigmoid() if alone else rows.softmax(-1)).numpy()


def decode(
    outputs: Sequence[FloatArray], labels: Sequence[str], problem: str | None, top_k: int | None
) -> list[LabelScore]:
    """The likeliest labels first; windows of one document are averaged by probability."""
    likely = probabilities(np.stack(outputs), problem).mean(axis=0)
    order = np.argsort(-likely, kind="stable")[:top_k]
    return [{"label": labels[i], "score": float(likely[i])} for i in order]


def classify(
    pipeline: Pipeline,
    texts: object,
    labels: Sequence[str],
    problem: str | None,
    top_k: int | None,
    options: Mapping[str, object],
) -> Results[Classification | Found[LabelScore]]:
    """The labels of each text; a single one where top_k is 1."""
    taken = inputs.texts("texts", texts, pairs=True)
    most = None if top_k is None else whole("top_k", top_k, 1)
    results: list[Classification | Found[LabelScore]] = []
    for document, outputs in pipeline.read(CLASSIFY, taken, step, options):
        best = decode(outputs, labels, problem, most)
        info = document.reading.info()
        results.append({**best[0], **info} if most == 1 else Found(best, document.reading))
    return Results(results, taken.single)


def judge(
    results: Sequence[Any], labels: Sequence[Any], classes: Sequence[str], problem: str | None
) -> dict[str, float]:
    """The share of texts with the right label, or how numbers are ranked; nothing for several labels.

    >>> judge([{"label": "no"}, {"label": "yes"}], ["no", 0], ["no", "yes"], None)
    {'accuracy': 0.5}
    """
    if problem == "regression" or len(classes) == 1:
        return spearman([one["score"] for one in results], labels)
    if problem == "multi" or any(isinstance(label, list | tuple) for label in labels):
        return {}
    right = [label if isinstance(label, str) else classes[label] for label in labels]
    return accuracy([one["label"] for one in results], right)


CLASSIFY = Task(
    name="classify",
    aliases=("text-classification", "sentiment-analysis", "text-ranking"),
    architecture="ForSequenceClassification",
    build=build,
    inputs=partial(inputs.texts, "texts", pairs=True),
    loss=loss,
    loss_sum=loss_sum,
    decode=decode,
    metric=accuracy,
    judge=judge,
    global_tokens="first",
    has_labels=True,
    targets=targets,
    form=TEXTS,
    padded_loss=lambda given: loss(given.outputs, given.labels, given.problem),
    has_problem=True,
    head_dropout=True,
    ranking=cross_encoder.ranking(ReadingRules(name="classify", global_tokens="first"), step),
)
