"""No token sees what comes after it."""

from dataclasses import dataclass
from typing import ClassVar

from longspan.errors import FARTHEST
from longspan.layout import Site
from longspan.patterns.base import Pattern, Reach, Spans, counts
from longspan.shapes import IntArray


@dataclass(frozen=True, repr=False)
class Causal(Pattern):
    """A token sees only itself and what came before it.

    A pooled slot is seen once its last token has come.
    """

    shift: ClassVar[int] = 1

    def count(self, q: Site, k: Site) -> IntArray:
        return counts(k.last <= q.position, q, k)

    def reach(self, spans: Spans) -> Reach:
        return Reach.of(spans, (-FARTHEST, spans.hi))
