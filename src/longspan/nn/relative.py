"""Biases by distance: the buckets of T5, shared by all layers."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from longspan.engine.labels import ClippedDistance, Labels
from longspan.engine.terms import ScoreTable
from longspan.layout import Site
from longspan.shapes import IntArray

FARTHEST = 128
"""Keys at this distance and beyond are of one bucket on each side."""


class RelativeBias(nn.Module):
    """A number for each bucket of distances and each head, added to scores (Raffel et al. 2020, section 2.1).

    It is handed out as a score for each distance rather than for each bucket: neighbouring pairs then have
    neighbouring labels, which is what the kernels read fastest. How far it `reaches` changes no result.

    >>> bias = RelativeBias(32, heads=2)
    >>> labels, buckets = bias.distances(reach=300)
    >>> labels, bias(buckets)[0].table.shape
    (ClippedDistance(limit=300), torch.Size([601, 2]))
    """

    def __init__(self, buckets: int, heads: int) -> None:
        super().__init__()
        self.table = nn.Embedding(buckets, heads)

    def distances(self, reach: int) -> tuple[ClippedDistance, Tensor]:
        """The labels that plans are made with, and the bucket of each."""
        limit = max(reach, FARTHEST)
        place = bucket(torch.arange(-limit, limit + 1), self.table.num_embeddings)
        return ClippedDistance(limit), place.to(self.table.weight.device)

    def forward(self, buckets: Tensor) -> tuple[ScoreTable, ...]:
        """The scores of labels whose buckets are given."""
        return (ScoreTable(self.table(buckets)),)


def bucket(distance: Tensor, buckets: int) -> Tensor:
    """The bucket of each distance from query to key; a half of them is for keys behind the query.

    Of each half one half again holds one distance each; the others widen up to FARTHEST.

    >>> bucket(torch.tensor([-500, -9, -1, 0, 1, 9, 500]), 32)
    tensor([15,  8,  1,  0, 17, 24, 31])
    """
    half = buckets // 2
    single = half // 2
    far = distance.abs()
    # In float32, as the models were trained: elsewhere a distance might fall into another bucket.
    share = torch.log(far.clamp(min=1).float() / single) / math.log(FARTHEST / single)
    wide = (single + (share * (half - single)).long()).clamp(max=half - 1)
    return torch.where(far < single, far, wide) + half * (distance > 0)


@dataclass(frozen=True)
class ByHead:
    """Labels for queries that stand once for each head, at position * heads + head: each head has its own.

    >>> ByHead(ClippedDistance(2), heads=3).size
    15
    """

    labels: Labels
    heads: int

    @property
    def size(self) -> int:
        return self.heads * self.labels.size

    def label(self, q: Site, k: Site) -> IntArray:
        head = q.position % self.heads
        there = replace(q, position=q.position // self.heads)
        return self.labels.label(there, k) + head * self.labels.size
