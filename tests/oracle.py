"""Attention straight from a pattern and two layouts: what every backend is measured against."""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from longspan.engine.dropout import Dropout
from longspan.engine.labels import Labels
from longspan.engine.reference import keep_matrix, scores, softmax, weigh
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
    softcap: float | None = None,
    dropout: Dropout | None = None,
) -> tuple[Tensor, Tensor]:
    """(out, lse) straight from the pattern, without a plan, in the dtype of q; differentiable by autograd."""
    keys = queries if keys is None else keys
    heads = q.shape[1]
    count = _counts(pattern, queries, keys, heads)
    label = None if labels is None else _labels(labels, queries, keys).expand(heads, -1, -1)
    relative = content = table = None
    for term in terms:
        match term:
            case RelativeKeys():
                relative, content = term.relative, term.content
            case ScoreTable():
                table = term.table
    keep = None
    if dropout is not None:
        columns = queries.sites.document, queries.sites.position, keys.sites.position
        document, q_position, k_position = map(torch.tensor, columns)
        keep = keep_matrix(dropout.counter(q.device), dropout.p, document, q_position, k_position, q)
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    probability, lse = softmax(scores(q, k, count, factor, label, relative, content, table, softcap))
    return weigh(probability, v, keep), lse.T


def _counts(pattern: Pattern, queries: Layout, keys: Layout, heads: int) -> Tensor:
    """How often each head counts each pair, 0 where it may not attend: (H, N, K) int32."""
    matrices = [pattern.head(h).matrix(queries, keys) for h in range(heads)]
    return torch.tensor(np.stack(matrices).astype(np.int32))


def _labels(labels: Labels, queries: Layout, keys: Layout) -> Tensor:
    """The label of each pair, 0 across documents (where it is never used): (N, K) int64."""
    q, k = queries.sites[:, None], keys.sites[None, :]
    return torch.tensor((labels.label(q, k) * (q.document == k.document)).astype(np.int64))
