"""The two patterns of the Sparse Transformer (section 4.2)."""

from dataclasses import dataclass
from typing import ClassVar

from longspan.errors import bad, whole
from longspan.layout import Site
from longspan.patterns.base import Pattern, Reach, Spans, counts
from longspan.patterns.causal import Causal
from longspan.patterns.window import Window
from longspan.shapes import BoolArray, IntArray


@dataclass(frozen=True, repr=False)
class Strided(Pattern):
    """A token sees the last `stride` tokens and every `stride`-th one before, never the future."""

    shift: ClassVar[int] = 1

    stride: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "stride", whole("stride", self.stride, 1))

    @property
    def windows(self) -> Pattern:
        """The same said with windows."""
        near = Window(left=self.stride, right=0)
        far = Window(left=None, right=0, dilation=self.stride)
        return (near | far) & Causal()

    def count(self, q: Site, k: Site) -> IntArray:
        return self.windows.count(q, k)

    def reach(self, spans: Spans) -> Reach:
        return self.windows.reach(spans)

    def explain(self) -> str:
        return f"A token sees the last {self.stride} tokens and every {self.stride}th one before them."


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
