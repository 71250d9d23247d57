"""Attention in plain operators of torch, for exporters that know no others: dense, so slow, and right."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from longspan.engine import reference
from longspan.engine.backends.base import Problem
from longspan.engine.backends.dense import decode
from longspan.engine.plan import Plan

Decoded = tuple[Tensor, Tensor | None]
"""How often each pair counts, and its label: (C, N, K) each, and the class of each head."""


class PlainAttention:
    """Plans decoded ahead of an export, so that what the exporter sees begins with queries and keys."""

    def __init__(self, plans: Iterable[Plan]) -> None:
        self.decoded: dict[int, Decoded] = {}
        for plan in plans:
            arrays = plan.arrays
            count, label = decode(arrays, torch.arange(len(arrays.q_sites)))
            heads = arrays.head_class.long()
            self.decoded[id(plan)] = count[heads], None if label is None else label[heads]
        self.exists: Tensor | None = None
        "(N,) which of the document's rows are no padding; None: all."

    def attend(self, problem: Problem, plan: Plan) -> tuple[Tensor, Tensor]:
        """(out, lse) of a problem without dropout."""
        count, label = self.decoded[id(plan)]  # (H, N, K)
        q, k, v, _, scale, relative, content, table = problem[:8]
        terms = relative, content, table, problem.softcap
        score = reference.scores(q, k, count, scale, label, *terms)
        if self.exists is not None and len(self.exists) == k.shape[0]:
            score = score.masked_fill(~self.exists, -torch.inf)
        probability, lse = reference.softmax(score)
        values = reference.per_query_head(v, q.shape[1])
        return torch.einsum("hnk,khd->nhd", probability, values), lse.T


_present: ContextVar[PlainAttention | None] = ContextVar("longspan_plain_attention", default=None)


def present() -> PlainAttention | None:
    """The plain attention of the export that is under way, if there is one."""
    return None if torch.compiler.is_dynamo_compiling() else _present.get()  # which it cannot trace


@contextmanager
def plain_attention(plans: Iterable[Plan]) -> Iterator[PlainAttention]:
    """Attention by these plans is computed in plain operators while the block runs."""
    plain = PlainAttention(plans)
    token = _present.set(plain)
    try:
        yield plain
    finally:
        _present.reset(token)
