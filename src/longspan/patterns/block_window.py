"""A sliding window of whole blocks."""

from dataclasses import dataclass

from longspan.errors import FARTHEST, whole
from longspan.layout import Site
from longspan.patterns.base import Pattern, Reach, Spans, counts
from longspan.shapes import IntArray


@dataclass(frozen=True, repr=False)
class BlockWindow(Pattern):
    """A token sees its own block and `radius` blocks on either side (BigBird, section 2)."""

    block: int
    radius: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "block", whole("block", self.block, 1))
        object.__setattr__(self, "radius", whole("radius", self.radius, 0))

    def count(self, q: Site, k: Site) -> IntArray:
        query, key, radius = q.position // self.block, k.position // self.block, self._radius
        allowed = key <= query + radius
        allowed &= key >= query - radius
        return counts(allowed, q, k)

    def reach(self, spans: Spans) -> Reach:
        first, last = spans.lo // self.block - self._radius, spans.hi // self.block + self._radius
        return Reach.of(spans, (first * self.block, last * self.block + self.block - 1))

    @property
    def _radius(self) -> int:
        return min(self.radius, FARTHEST // self.block)  # no farther than int32 can tell

    @property
    def grain(self) -> int:
        return self.block

    @property
    def shift(self) -> int:
        return self.block

    def explain(self) -> str:
        return f"A token sees its own block of {self.block} and {self.radius} more on either side."
