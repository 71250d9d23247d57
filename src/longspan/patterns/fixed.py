"""The fixed pattern of the Sparse Transformer (section 4.2)."""

from dataclasses import dataclass

from longspan.errors import bad, whole
from longspan.layout import Site
from longspan.patterns.base import Pattern, Reach, Spans, counts
from longspan.shapes import BoolArray, IntArray


@dataclass(frozen=True, repr=False)
class Fixed(Pattern):
    """A token sees its own block and the last `summary` tokens of every earlier block, never the future."""

    block: int
    summary: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "block", whole("block", self.block, 1))
        object.__setattr__(self, "summary", whole("summary", self.summary, 1))
        if self.summary > self.block:
            raise bad("summary", f"at most the block's {self.block} tokens", self.summary)

    def count(self, q: Site, k: Site) -> IntArray:
        allowed = q.position // self.block == k.position // self.block
        allowed |= self.landmarks(k)
        allowed &= k.last <= q.position
        return counts(allowed, q, k)

    def reach(self, spans: Spans) -> Reach:
        return Reach.of(spans, (spans.lo // self.block * self.block, spans.hi), landmarks=True)

    def landmarks(self, k: Site) -> BoolArray:
        return k.position % self.block >= self.block - self.summary

    @property
    def shift(self) -> int:
        return self.block

    def explain(self) -> str:
        return (
            f"A token sees what came before it in its own block of {self.block}, "
            f"and the last {self.summary} of every earlier block."
        )
