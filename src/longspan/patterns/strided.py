"""The strided pattern of the Sparse Transformer (section 4.2)."""

from dataclasses import dataclass
from typing import ClassVar

from longspan.errors import whole
from longspan.layout import Site
from longspan.patterns.base import Pattern, Reach, Spans
from longspan.patterns.causal import Causal
from longspan.patterns.window import Window
from longspan.shapes import IntArray


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
