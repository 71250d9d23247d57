"""Attention as the papers write it, over whole matrices: the oracle every backend is measured against."""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from longspan.engine.dropout import Dropout, kept, key_hash, row_hash
from longspan.engine.labels import Labels
from longspan.engine.terms import RelativeKeys, ScoreTable, Term
from longspan.layout import Layout
from longspan.patterns.base import Pattern


def oracle(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    pattern: Pattern,
    queries: Layout,
    keys: Layout | None = None,
    *,
    labels: Labels | None = None,
    scale: float | None = None,
    terms: Iterable[Term] = (),
    dropout: Dropout | None = None,
) -> tuple[Tensor, Tensor]:
    """(out, lse) straight from the pattern's truth, in the dtype of q, differentiable by autograd.

    >>> from longspan.patterns import Window
    >>> out, lse = oracle(*torch.zeros(3, 4, 1, 2), Window(1), Layout.packed([4]))
    >>> lse.exp().round().flatten()
    tensor([2., 3., 3., 2.])
    """
    keys = queries if keys is None else keys
    heads = q.shape[1]
    count = counts(pattern, queries, keys, heads)
    label = None if labels is None else label_matrix(labels, queries, keys).expand(heads, -1, -1)
    relative = content = table = None
    for term in terms:
        match term:
            case RelativeKeys():
                relative, content = term.relative, term.content
            case ScoreTable():
                table = term.table
    keep = None
    if dropout is not None:
        rows, columns = queries.sites, torch.tensor(keys.sites.position)
        place = torch.tensor(rows.document), torch.tensor(rows.position)
        keep = keep_matrix(dropout.counter(q.device), dropout.p, *place, columns, q)
    score = scores(q, k, count, _scale(q, scale), label, relative, content, table)
    probability, lse = softmax(score)
    return weigh(probability, v, keep), lse.T


def _scale(q: Tensor, scale: float | None) -> float:
    return q.shape[-1] ** -0.5 if scale is None else scale


def counts(pattern: Pattern, queries: Layout, keys: Layout, heads: int) -> Tensor:
    """How often each head counts each pair, 0 where they may not meet at all: (H, N, K) int32."""
    matrices = [pattern.head(h).matrix(queries, keys) for h in range(heads)]
    return torch.tensor(np.stack(matrices).astype(np.int32))


def label_matrix(labels: Labels, queries: Layout, keys: Layout) -> Tensor:
    """The label of each pair, 0 across documents (where it is never used): (N, K) int64."""
    q, k = queries.sites[:, None], keys.sites[None, :]
    return torch.tensor((labels.label(q, k) * (q.document == k.document)).astype(np.int64))


def keep_matrix(
    seed: Tensor, p: float, document: Tensor, q_position: Tensor, k_position: Tensor, q: Tensor
) -> Tensor:
    """What dropout multiplies each probability with, 0 or 1 / (1 - p): (H, N, K), of q's heads and dtype."""
    head = torch.arange(q.shape[1], dtype=torch.int32, device=q.device)[:, None]
    row = row_hash(seed, document, q_position, head)  # (H, N)
    return kept(row[:, :, None], key_hash(k_position), p).to(q.dtype) / (1 - p)


def scores(
    q: Tensor,
    k: Tensor,
    count: Tensor,
    scale: float,
    label: Tensor | None = None,
    relative: Tensor | None = None,
    content: Tensor | None = None,
    table: Tensor | None = None,
) -> Tensor:
    """Scores with every term, -inf where count is 0: (N, H, D), (K, H, D) -> (H, N, K)."""
    score = torch.einsum("nhd,khd->hnk", q, k) * scale
    if relative is not None and label is not None:
        query = q if content is None else q + content
        score = score + (torch.einsum("nhd,lhd->hnl", query, relative) * scale).gather(2, label)
    if table is not None and label is not None:
        score = score + table.T[:, None].expand(-1, q.shape[0], -1).gather(2, label)
    return torch.where(count > 0, score + count.clamp(min=1).to(score.dtype).log(), -torch.inf)


def softmax(score: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities over the last axis and their log-sum-exp; a row of -inf gives 0 and -inf."""
    peak = score.detach().amax(-1, keepdim=True) if score.shape[-1] else score.new_zeros(*score.shape[:-1], 1)
    weight = (score - peak.masked_fill(peak == -torch.inf, 0)).exp()
    total = weight.sum(-1, keepdim=True)
    empty = total == 0
    total = total.masked_fill(empty, 1)
    return weight / total, (peak + total.log()).masked_fill(empty, -torch.inf).squeeze(-1)


def weigh(probability: Tensor, v: Tensor, keep: Tensor | None) -> Tensor:
    """The mean of the values, (H, N, K), (K, H, D) -> (N, H, D); NaN and inf reach who sees them only."""
    weight = probability if keep is None else probability * keep
    sick = ~v.isfinite()
    if not sick.any():
        return torch.einsum("hnk,khd->nhd", weight, v)
    reached = torch.einsum("hnk,khd->nhd", (probability != 0).to(v.dtype), sick.to(v.dtype)) > 0
    return weigh(probability, v.masked_fill(sick, 0), keep).masked_fill(reached, torch.nan)
