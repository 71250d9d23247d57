"""Patterns stacked as layers, without a model around them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from longspan.errors import FARTHEST, bad, whole
from longspan.families.attention_spec import AttentionSpec, LayerSpecs
from longspan.layout import Layout
from longspan.patterns.base import Pattern


@dataclass(frozen=True)
class Stack:
    """What a model's config says of its attention, said of patterns alone; the first layer comes first."""

    longest: ClassVar[int] = FARTHEST
    "Patterns read documents of any length."
    mark_name: ClassVar[str] = "global token"

    patterns: tuple[Pattern, ...]
    heads: int
    head_size: int

    @property
    def layers(self) -> int:
        """How many layers there are."""
        return len(self.patterns)

    @property
    def width(self) -> int:
        """All heads together."""
        return self.heads * self.head_size

    def usual_marks(self, length: int) -> tuple[int, ...]:
        """Patterns mark no tokens by themselves."""
        return ()

    @property
    def name(self) -> str:
        """The distinct patterns.

        >>> from longspan.patterns import Full, Window
        >>> stack([Window(2), Window(2), Full()]).name
        'Window(2), Full()'
        """
        return ", ".join(dict.fromkeys(map(repr, self.patterns)))

    def attention(self, layout: Layout) -> LayerSpecs:
        """One attention in each layer."""
        return tuple((AttentionSpec(name="", pattern=p, queries=layout, keys=layout),) for p in self.patterns)


def stack(patterns: Sequence[Pattern], heads: int | None = None, head_size: int | None = None) -> Stack:
    """The layers; by default with as many heads as a pattern lists or 12, of size 64, as in base models."""
    if not patterns or not all(isinstance(pattern, Pattern) for pattern in patterns):
        raise bad("patterns", "patterns, one for each layer", patterns)
    if heads is None:
        heads = next((pattern.heads_declared for pattern in patterns if pattern.heads_declared), 12)
    if head_size is None:
        head_size = 64
    return Stack(tuple(patterns), whole("heads", heads, 1), whole("head_size", head_size, 1))
