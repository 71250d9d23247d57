"""Global blocks: the first and the last ones of a document."""

from dataclasses import dataclass

from longspan.errors import FARTHEST, whole
from longspan.layout import Site
from longspan.patterns.base import Pattern, Reach, Spans, counts
from longspan.shapes import BoolArray, IntArray


@dataclass(frozen=True, repr=False)
class GlobalBlocks(Pattern):
    """The `first` and `last` blocks of a document see all and are seen by all (BigBird-ITC, section 2)."""

    block: int
    first: int = 1
    last: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "block", whole("block", self.block, 1))
        object.__setattr__(self, "first", whole("first", self.first, 0))
        object.__setattr__(self, "last", whole("last", self.last, 0))

    def count(self, q: Site, k: Site) -> IntArray:
        closing = self._closing(q.length)
        allowed = self._opens_or_closes(q.position, closing) | self._opens_or_closes(k.position, closing)
        return counts(allowed, q, k)

    def reach(self, spans: Spans) -> Reach:
        closing = self._closing(spans.length)
        sees_all = (spans.lo < self.first * self.block) | (spans.hi >= closing)
        everywhere = Reach.of(spans, (-FARTHEST, FARTHEST)).only(sees_all)
        return everywhere | Reach.of(spans, (-FARTHEST, self.first * self.block - 1), (closing, FARTHEST))

    @property
    def grain(self) -> int:
        return self.block

    def explain(self) -> str:
        return (
            f"The first {self.first} and last {self.last} blocks of {self.block} see every token, "
            "and every token sees them."
        )

    def _closing(self, length: IntArray) -> IntArray:
        """First position of the last blocks, the document's length rounded up to a block."""
        blocks: IntArray = (length + self.block - 1) // self.block
        return (blocks - min(self.last, FARTHEST // self.block)) * self.block

    def _opens_or_closes(self, position: IntArray, closing: IntArray) -> BoolArray:
        return (position < self.first * self.block) | (position >= closing)
