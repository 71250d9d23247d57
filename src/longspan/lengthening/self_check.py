"""The self-check of a lengthened model: equal to its source where both see everything, drifting beyond."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.families.seq2seq.model import shift_right
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.nn.heads import PoolingHead, pool

TOLERANCE = 1e-5
"""No number may differ by more than this times the largest expected one, or this if that is below 1."""


@dataclass(frozen=True, kw_only=True)
class Drift:
    """What has changed for a document of some length."""

    tokens: int
    cosine: float
    "Of the document's vectors."
    mean_difference: float
    "Of the hidden states."


@torch.no_grad()
def difference(source: TaskModel, target: TaskModel, longest: int) -> float:
    """The largest difference on documents of up to `longest` tokens, by the rule of TOLERANCE.

    Hidden states and what the head gives are compared, without global tokens and with the first one global.
    """
    lengths = sorted({1, min(2, longest), (longest + 1) // 2, longest})
    ids = torch.cat([_words(source, n) for n in lengths])
    types = _types(source, lengths)
    worst = 0.0
    marks: tuple[list[int], ...] = ([], [0])
    for layout in (Layout.packed(lengths, marked=[marked] * len(lengths)) for marked in marks):
        expected, actual = (
            (model.backbone(ids, layout, types), _outcome(model, ids, layout, types))
            for model in (source, target)
        )
        for ours, theirs in zip(actual, expected, strict=True):
            error = (ours - theirs).abs().max() / theirs.abs().max().clamp(min=1.0)
            worst = max(worst, float(error)) if torch.isfinite(error) else float("inf")
    return worst


def _outcome(model: TaskModel, ids: Tensor, layout: Layout, types: Tensor | None) -> Tensor:
    """What the head gives; what is written about a document are its own first words."""
    if not isinstance(model, Seq2SeqLM):
        return model(ids, layout, types)  # type: ignore[no-any-return]
    config, parts = model.backbone.config, ids.split(layout.lengths.tolist())
    again = [part[: config.positions] for part in parts]
    texts = Layout.packed([len(part) for part in again])
    return model(ids, layout, shift_right(torch.cat(again), texts, config), texts)  # type: ignore[no-any-return]


@torch.no_grad()
def drift(source: TaskModel, target: TaskModel, tokens: int) -> Drift:
    """The change for one document of so many tokens."""
    ids, layout = _words(source, tokens), Layout.packed([tokens])
    before, after = source.backbone(ids, layout), target.backbone(ids, layout)
    how = source.head.pooling if isinstance(source.head, PoolingHead) else "mean"
    cosine = F.cosine_similarity(pool(before, layout, how), pool(after, layout, how))
    return Drift(tokens=tokens, cosine=float(cosine), mean_difference=float((after - before).abs().mean()))


def _words(model: TaskModel, count: int) -> Tensor:
    """Ids with frequencies like those of words: the k-th is drawn about 1 / k as often as the first."""
    source = torch.Generator().manual_seed(count)
    size = model.config.vocab_size
    ranks = torch.pow(float(size), torch.rand(count, generator=source, dtype=torch.float64)).long() - 1
    return torch.randperm(size, generator=torch.Generator().manual_seed(0))[ranks.clamp(0, size - 1)]


def _types(model: TaskModel, lengths: list[int]) -> Tensor | None:
    """The second half of each document is its second part, where the model tells parts apart."""
    if model.config.token_types <= 1:
        return None
    return torch.cat([(torch.arange(n) >= (n + 1) // 2).long() for n in lengths])
