"""Attention as the papers write it, over whole matrices: what the `dense` backend computes."""

import torch
from torch import Tensor

from longspan.engine.dropout import kept, key_hash, row_hash


def keep_matrix(
    seed: Tensor, p: float, document: Tensor, q_position: Tensor, k_position: Tensor, q: Tensor
) -> Tensor:
    """What dropout multiplies each probability by, 0 or 1 / (1 - p): (H, N, K), with q's heads and dtype."""
    head = torch.arange(q.shape[1], dtype=torch.int32, device=q.device)[:, None]
    row = row_hash(seed, document, q_position, head)  # (H, N)
    return kept(row[:, :, None], key_hash(k_position), p).to(q.dtype) / (1 - p)


def per_query_head(x: Tensor, heads: int) -> Tensor:
    """Keys or values as the query heads read them, head h those of h // (H / G): (K, G, D) -> (K, H, D)."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)


def products(
    q: Tensor,
    k: Tensor,
    scale: float,
    label: Tensor | None = None,
    relative: Tensor | None = None,
    content: Tensor | None = None,
) -> Tensor:
    """Scaled products of queries with keys and relative keys: (N, H, D), (K, G, D) -> (H, N, K)."""
    product = torch.einsum("nhd,khd->hnk", q, per_query_head(k, q.shape[1])) * scale
    if relative is None or label is None:
        return product
    query = q if content is None else q + content
    return product + (torch.einsum("nhd,lhd->hnl", query, relative) * scale).gather(2, label)


def scores(
    q: Tensor,
    k: Tensor,
    count: Tensor,
    scale: float,
    label: Tensor | None = None,
    relative: Tensor | None = None,
    content: Tensor | None = None,
    table: Tensor | None = None,
    softcap: float | None = None,
) -> Tensor:
    """Scores with every term, -inf where count is 0: (N, H, D), (K, G, D) -> (H, N, K)."""
    score = products(q, k, scale, label, relative, content)
    if softcap is not None:
        score = softcap * (score / softcap).tanh()
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
    """Sums of weighted values: (H, N, K), (K, G, D) -> (N, H, D). NaN and inf reach only who sees them."""
    weight = probability if keep is None else probability * keep
    v = per_query_head(v, len(probability))
    nonfinite = ~v.isfinite()
    if not nonfinite.any():
        return torch.einsum("hnk,khd->nhd", weight, v)
    reached = torch.einsum("hnk,khd->nhd", (probability != 0).to(v.dtype), nonfinite.to(v.dtype)) > 0
    return weigh(probability, v.masked_fill(nonfinite, 0), keep).masked_fill(reached, torch.nan)
