"""The reference as a backend: whole matrices decoded from the plan. For checking, not for speed."""

import torch
from torch import Tensor

from longspan.engine import reference
from longspan.engine.backends.base import DTYPES, Gradients, Problem, allowed, arithmetic, unpack
from longspan.engine.plan import PlanArrays

MOST_PAIRS = 2**28  # 1 GB of float32 scores


class Dense:
    """Every pair of every head at once, whatever the pattern forbids."""

    name = "dense"
    trusts_plans = True

    def refuses(self, problem: Problem) -> list[str]:
        reasons = []
        if problem.q.dtype not in DTYPES:
            reasons.append(f"does not know {problem.q.dtype}")
        pairs = problem.q.shape[0] * problem.k.shape[0] * problem.q.shape[1]
        if pairs > MOST_PAIRS:
            reasons.append(f"would hold {pairs} scores at once, more than {MOST_PAIRS}")
        return reasons

    def forward(self, problem: Problem, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
        wide = _widen(problem)
        count, label, keep = _matrices(wide)
        probability, lse = reference.softmax(_scores(wide, count, label))
        out = reference.weigh(probability, wide.v, keep)
        return out.to(problem.q.dtype).contiguous(), lse.T.contiguous()

    def backward(
        self, problem: Problem, out: Tensor, lse: Tensor, grad_out: Tensor, grad_lse: Tensor | None
    ) -> Gradients:
        wide = _widen(problem)
        count, label, keep = _matrices(wide)
        probability, _ = reference.softmax(_scores(wide, count, label))
        grad_out = grad_out.to(wide.q.dtype)
        k, v = (reference.per_query_head(x, wide.q.shape[1]) for x in (wide.k, wide.v))
        grad_probability = torch.einsum("nhd,khd->hnk", grad_out, v)
        if keep is not None:
            grad_probability = grad_probability * keep
        mean = (grad_probability * probability).sum(-1, keepdim=True)
        if grad_lse is not None:
            mean = (mean - grad_lse.T.unsqueeze(-1)).masked_fill(lse.T.unsqueeze(-1) == -torch.inf, 0)
        grad_score = probability * (grad_probability - mean)
        grad_v = torch.einsum("hnk,nhd->khd", probability if keep is None else probability * keep, grad_out)
        table = None
        if wide.table is not None and label is not None:
            table = _by_label(grad_score, label, len(wide.table)).sum(1).T
        if wide.softcap is not None:
            bent = reference.products(wide.q, wide.k, wide.scale, label, wide.relative, wide.content)
            grad_score = grad_score * (1 - (bent / wide.softcap).tanh().square())
        grad_k = torch.einsum("hnk,nhd->khd", grad_score, wide.q) * wide.scale
        grad_q = torch.einsum("hnk,khd->nhd", grad_score, k) * wide.scale
        from_terms, relative, content = _relative_gradients(wide, grad_score, label)
        grad_k, grad_v = (_per_key_head(x, wide.k.shape[1]) for x in (grad_k, grad_v))
        narrow = (grad_q + from_terms, grad_k, grad_v, relative, content, table)
        return Gradients(*(g if g is None else g.to(problem.q.dtype).contiguous() for g in narrow))  # type: ignore[arg-type]


def _per_key_head(x: Tensor, heads: int) -> Tensor:
    """Sums over the query heads that read a key head: (K, H, D) -> (K, G, D)."""
    return x if x.shape[1] == heads else x.unflatten(1, (heads, -1)).sum(2)


def _matrices(wide: Problem) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Counts, labels and dropout of every pair, (H, N, K) each."""
    arrays, keep = wide.arrays, None
    if wide.seed is not None:
        document, position = arrays.q_sites.unbind(1)
        keep = reference.keep_matrix(wide.seed, wide.dropout, document, position, arrays.k_positions, wide.q)
    count, label = decode(arrays)
    return count[arrays.head_class], None if label is None else label[arrays.head_class], keep


def decode(arrays: PlanArrays, rows: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    """The counts and labels of each class, for all query rows or some distinct ones: (C, R, K)."""
    queries, keys, classes = len(arrays.q_sites), len(arrays.k_positions), len(arrays.class_start) - 1
    rows = torch.arange(queries, device=arrays.q_rows.device) if rows is None else rows
    slot = torch.full((queries + 1,), -1, device=rows.device)  # padding (row -1) finds the last
    slot[rows] = torch.arange(len(rows), device=rows.device)
    slots = slot[arrays.q_rows]  # (QT, 64)
    tile, class_of = _owner(arrays.entry_start), _owner(arrays.class_start)
    needed = (slots >= 0).any(1)[tile]
    tile, entries = tile[needed], arrays.entries[needed]
    pairs = unpack(allowed(arrays, entries)) & (slots[tile] >= 0).unsqueeze(-1)  # (E, 64, 64)
    e, i, j = pairs.nonzero(as_tuple=True)
    place = (class_of[tile[e]], slots[tile[e], i], arrays.k_rows[entries[e, 0], j].long())
    count = torch.zeros(classes, len(rows), keys, dtype=torch.int32, device=rows.device)
    count.index_put_(place, entries[e, 2], accumulate=True)
    if not len(arrays.label_list):
        return count, None
    label = torch.zeros(classes, len(rows), keys, dtype=torch.int64, device=rows.device)
    rank = arrays.label_tiles[entries[e, 3], i, j]
    label[place] = arrays.label_list[arrays.label_start[place[0]] + rank].long()
    return count, label


def _owner(start: Tensor) -> Tensor:
    """The range between consecutive starts that each element lies in."""
    return torch.repeat_interleave(torch.arange(len(start) - 1, device=start.device), start.diff())


def _widen(problem: Problem) -> Problem:
    """The same problem in the dtype of the arithmetic."""
    dtype = arithmetic(problem.q.dtype)
    q, k, v = (x.to(dtype) for x in (problem.q, problem.k, problem.v))
    terms = (problem.relative, problem.content, problem.table)
    relative, content, table = (x if x is None else x.to(dtype) for x in terms)
    return problem._replace(q=q, k=k, v=v, relative=relative, content=content, table=table)


def _scores(wide: Problem, count: Tensor, label: Tensor | None) -> Tensor:
    terms = (wide.relative, wide.content, wide.table)
    return reference.scores(wide.q, wide.k, count, wide.scale, label, *terms, wide.softcap)


def _by_label(grad_score: Tensor, label: Tensor, labels: int) -> Tensor:
    """Sums over the keys of each label: (H, N, K) -> (H, N, L)."""
    return grad_score.new_zeros(*label.shape[:2], labels).scatter_add_(2, label, grad_score)


def _relative_gradients(
    wide: Problem, grad_score: Tensor, label: Tensor | None
) -> tuple[Tensor | float, Tensor | None, Tensor | None]:
    """The relative keys' part of the gradient of q; the gradients of relative and content."""
    if label is None or wide.relative is None:
        return 0.0, None, None
    by_label = _by_label(grad_score, label, len(wide.relative))
    query = wide.q if wide.content is None else wide.q + wide.content
    relative = torch.einsum("hnl,nhd->lhd", by_label, query) * wide.scale
    to_query = torch.einsum("hnl,lhd->nhd", by_label, wide.relative) * wide.scale
    return to_query, relative, None if wide.content is None else to_query.sum(0)
