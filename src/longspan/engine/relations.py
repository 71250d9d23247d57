"""ETC's labels: how far apart two tokens are, or whether a token belongs to a global one."""

from dataclasses import dataclass

import numpy as np

from longspan.errors import whole
from longspan.layout import Site
from longspan.patterns.belongs import LINKS, belongs
from longspan.shapes import IntArray


@dataclass(frozen=True)
class Relations:
    """The relation of two sites (ETC, section 3.3), where marked rows are the global stream.

    In one stream: 0 is the token itself, 1 to k the distance to the right, k + 1 to 2k to the left, clipped
    at k = `distance`; 2k + 3 is for two global tokens of different segments. Across streams: 2k + 2 if the
    token belongs to the global one by one of LINKS, else 2k + 1. `size` labels have room for all of them.

    >>> from longspan.layout import Layout
    >>> site = Layout.packed([4]).sites
    >>> Relations(distance=2, size=8).label(site[:, None], site[None, :]).tolist()
    [[0, 1, 2, 2], [3, 0, 1, 2], [4, 3, 0, 1], [4, 4, 3, 0]]
    """

    distance: int
    size: int

    def __post_init__(self) -> None:
        whole("distance", self.distance, 1)
        repair = "There are 2 * distance + 1 distances, two labels across streams and one across segments."
        whole("size", self.size, 2 * self.distance + 4, repair)

    def label(self, q: Site, k: Site) -> IntArray:
        far, across = self.distance, np.int32(2 * self.distance + 1)
        label: IntArray = np.clip(k.position - q.position, -far, far)
        label = np.where(label < 0, far - label, label)
        if q.marked.any() and "segment" in q.tags and "segment" in k.tags:
            apart = q.marked & k.marked & (q.tags["segment"] != k.tags["segment"])
            label[apart] = across + 2
        if (other := q.marked != k.marked).any():
            np.copyto(label, across + belongs(q, k, LINKS), where=other)
        return label
