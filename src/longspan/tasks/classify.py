"""Classify: labels for a whole document."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.errors import bad
from longspan.models.task import TaskModel
from longspan.shapes import FloatArray
from longspan.tasks.run import scores
from longspan.tasks.table import one_of
from longspan.text.packing import Batch

PROBLEMS = ("single", "multi", "regression")
"""One label of several, any number of labels, or numbers."""


def step(model: TaskModel, batch: Batch) -> Sequence[Tensor]:
    """The labels' scores (L,) of each piece."""
    return scores(model, batch).unbind()


def loss(found: Tensor, labels: Tensor, problem: str | None = None) -> Tensor:
    """How wrong the scores (documents, L) are.

    Hugging Face's rules: cross entropy for whole numbers (documents,), binary cross entropy for a table
    (documents, L) of zeros and ones where labels do not exclude each other, squared error for numbers.

    >>> loss(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
    tensor(0.6931)
    """
    if problem is None:
        problem = "regression" if found.shape[1] == 1 else "multi" if labels.is_floating_point() else "single"
    if one_of("problem", problem, PROBLEMS) == "single":
        if labels.shape != found.shape[:1]:
            raise bad("labels", f"of shape {tuple(found.shape[:1])}", tuple(labels.shape))
        return F.cross_entropy(found, labels)
    if labels.numel() != found.numel():
        raise bad("labels", f"of shape {tuple(found.shape)}", tuple(labels.shape))
    wanted = labels.to(found.dtype).view_as(found)
    if problem == "multi":
        return F.binary_cross_entropy_with_logits(found, wanted)
    return F.mse_loss(found, wanted)


def probabilities(found: FloatArray, problem: str | None) -> FloatArray:
    """(windows, L) scores as probabilities, by Hugging Face's rules.

    Softmax; sigmoid for a single label or labels that do not exclude each other; numbers stay as they are.
    """
    if problem == "regression":
        return found
    rows = torch.from_numpy(found)
    alone = problem == "multi" or found.shape[-1] == 1
    return (rows.sigmoid() if alone else rows.softmax(-1)).numpy()


def decode(
    found: Sequence[FloatArray], labels: Sequence[str], problem: str | None, top_k: int | None
) -> list[dict[str, Any]]:
    """The likeliest labels first; windows of one document are averaged by probability."""
    likely = probabilities(np.stack(found), problem).mean(axis=0)
    order = np.argsort(-likely, kind="stable")[:top_k]
    return [{"label": labels[i], "score": float(likely[i])} for i in order]
