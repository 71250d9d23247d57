"""Choose: which of several continuations or answers fits a text. Each is read beside the text."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longspan.errors import bad
from longspan.shapes import FloatArray
from longspan.tasks.classify import step
from longspan.tasks.segments import group_logsumexp, mean

__all__ = ["decode", "loss", "step"]


def loss(found: Tensor, counts: Sequence[int], right: Tensor) -> Tensor:
    """Cross entropy over the choices of each question, which may differ in number.

    `found` (documents, 1) holds the scores of the choices of one question after the other, `counts` how many
    there are of each, and `right` (questions,) which one is right.

    >>> loss(torch.zeros(5, 1), [3, 2], torch.tensor([0, 1]))
    tensor(0.8959)
    """
    sizes = torch.as_tensor(counts, device=found.device)
    if int(sizes.sum()) != len(found) or right.shape != sizes.shape:
        raise bad("counts", f"as many choices as the {len(found)} documents", list(counts))
    if bool(((right < 0) | (right >= sizes)).any()):
        raise bad("right", "choices of their questions, counted from 0", right.tolist())
    question = torch.repeat_interleave(torch.arange(len(sizes), device=found.device), sizes)
    norm = group_logsumexp(found, question, len(sizes)).squeeze(1)
    chosen = found[sizes.cumsum(0) - sizes + right].squeeze(1)
    return mean(norm - chosen)


def decode(choices: Sequence[str], found: Sequence[Sequence[FloatArray]]) -> dict[str, Any]:
    """The best choice; scores of a choice read in windows are averaged, as Longformer does for WikiHop."""
    means = np.array([np.mean(windows) for windows in found], np.float32)
    likely = torch.from_numpy(means).softmax(0).tolist()
    best = int(np.argmax(means))
    return {"index": best, "choice": choices[best], "score": likely[best], "scores": likely}
