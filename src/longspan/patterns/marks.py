"""Global tokens: the rows that a layout marks (Longformer, section 3)."""

from dataclasses import dataclass
from typing import ClassVar

from longspan.errors import FARTHEST
from longspan.layout import Site
from longspan.patterns.base import Pattern, Reach, Spans, counts
from longspan.shapes import BoolArray, IntArray


@dataclass(frozen=True, repr=False)
class _Marks(Pattern):
    """What the four have in common: no opinion on tiling."""

    step: ClassVar[int] = 0
    shift: ClassVar[int] = 1


@dataclass(frozen=True, repr=False)
class ToGlobal(_Marks):
    """Every token sees the marked tokens."""

    def count(self, q: Site, k: Site) -> IntArray:
        return counts(k.marked, q, k)

    def reach(self, spans: Spans) -> Reach:
        return Reach.of(spans, landmarks=True)

    def landmarks(self, k: Site) -> BoolArray:
        return k.marked


@dataclass(frozen=True, repr=False)
class FromGlobal(_Marks):
    """The marked tokens see every token."""

    splits_marked: ClassVar[bool] = True

    def count(self, q: Site, k: Site) -> IntArray:
        return counts(q.marked, q, k)

    def reach(self, spans: Spans) -> Reach:
        return Reach.of(spans, (-FARTHEST, FARTHEST)).only(spans.marked | spans.mixed)


@dataclass(frozen=True, repr=False)
class GlobalTokens(_Marks):
    """The marked tokens see every token, and every token sees them."""

    splits_marked: ClassVar[bool] = True

    def count(self, q: Site, k: Site) -> IntArray:
        return counts(q.marked | k.marked, q, k)

    def reach(self, spans: Spans) -> Reach:
        return FromGlobal().reach(spans) | ToGlobal().reach(spans)

    def landmarks(self, k: Site) -> BoolArray:
        return k.marked


@dataclass(frozen=True, repr=False)
class FromLocal(_Marks):
    """Only tokens that are not marked see anything.

    They see every token, and the marked ones nothing: meant for `&`.
    """

    splits_marked: ClassVar[bool] = True

    def count(self, q: Site, k: Site) -> IntArray:
        return counts(~q.marked, q, k)

    def reach(self, spans: Spans) -> Reach:
        return Reach.of(spans, (-FARTHEST, FARTHEST)).only(~spans.marked | spans.mixed)
