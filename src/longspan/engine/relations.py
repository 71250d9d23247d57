"""ETC's labels: how far apart two tokens stand, or whether a token belongs to a global one."""

from dataclasses import dataclass

import numpy as np

from longspan.errors import whole
from longspan.layout import Site
from longspan.patterns.belongs import LINKS, belongs
from longspan.shapes import IntArray


@dataclass(frozen=True)
class Relations:
    """What a pair of sites is to each other (ETC, section 3.3), where marked rows are the global stream.

    In one stream: 0 itself, 1 to k so far to the right, k + 1 to 2k to the left, k being `distance` or more;
    2k + 3 for two global tokens of different segments. Across streams: 2k + 2 if the token belongs to the
    global one by one of LINKS, else 2k + 1. `size` labels have room for all.

    >>> from longspan.layout import Layout
    >>> site = Layout.packed([4]).sites
    >>> Relations(distance=2, size=8).label(site[:, None], site[None, :]).tolist()
    [[0, 1, 2, 2], [3, 0, 1, 2], [4, 3, 0, 1], [4, 4, 3, 0]]
    """

    distance: int
    size: int

    def __post_init__(self) -> None:
        whole("distance", self.distance, 1)
        repair = "There are 2 * distance + 1 places, two labels across streams and one across segments."
        whole("size", self.size, 2 * self.distance + 4, repair)

    def label(self, q: Site, k: Site) -> IntArray:
        far, across = self.distance, np.int32(2 * self.distance + 1)
        found: IntArray = np.clip(k.position - q.position, -far, far)
        found = np.where(found < 0, far - found, found)
        if q.marked.any() and "segment" in q.tags and "segment" in k.tags:
            apart = q.marked & k.marked & (q.tags["segment"] != k.tags["segment"])
            found[apart] = across + 2
        if (other := q.marked != k.marked).any():
            np.copyto(found, across + belongs(q, k, LINKS), where=other)
        return found
