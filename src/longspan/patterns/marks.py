"""Global tokens: the rows that a layout marks (Longformer, section 3)."""

from dataclasses import dataclass

from longspan.errors import FARTHEST
from longspan.layout import Site
from longspan.patterns.base import Pattern, Reach, Spans, counts
from longspan.shapes import BoolArray, IntArray


@dataclass(frozen=True, repr=False)
class _Marks(Pattern):
    """What the four have in common: no opinion on tiling."""

    @property
    def step(self) -> int:
        return 0

    @property
    def shift(self) -> int:
        return 1

    @classmethod
    def examples(cls) -> tuple[Pattern, ...]:
        return (cls(),)


@dataclass(frozen=True, repr=False)
class ToGlobal(_Marks):
    """Every token sees the marked tokens."""

    def count(self, q: Site, k: Site) -> IntArray:
        return counts(k.marked, q, k)

    def reach(self, spans: Spans) -> Reach:
        return Reach.of(spans, landmarks=True)

    def landmarks(self, k: Site) -> BoolArray:
        return k.marked

    def explain(self) -> str:
        return "Every token sees the marked tokens."


@dataclass(frozen=True, repr=False)
class FromGlobal(_Marks):
    """The marked tokens see every token."""

    def count(self, q: Site, k: Site) -> IntArray:
        return counts(q.marked, q, k)

    def reach(self, spans: Spans) -> Reach:
        return Reach.of(spans, (-FARTHEST, FARTHEST)).only(spans.marked | spans.mixed)

    @property
    def splits_marked(self) -> bool:
        return True

    def explain(self) -> str:
        return "The marked tokens see every token."


@dataclass(frozen=True, repr=False)
class GlobalTokens(_Marks):
    """Both: the marked tokens see every token and every token sees them."""

    def count(self, q: Site, k: Site) -> IntArray:
        return counts(q.marked | k.marked, q, k)

    def reach(self, spans: Spans) -> Reach:
        return FromGlobal().reach(spans) | ToGlobal().reach(spans)

    @property
    def splits_marked(self) -> bool:
        return True

    def landmarks(self, k: Site) -> BoolArray:
        return k.marked

    def explain(self) -> str:
        return "The marked tokens see every token, and every token sees them."


@dataclass(frozen=True, repr=False)
class FromLocal(_Marks):
    """The tokens that are not marked see every token, and the marked ones nothing: meant for `&`."""

    def count(self, q: Site, k: Site) -> IntArray:
        return counts(~q.marked, q, k)

    def reach(self, spans: Spans) -> Reach:
        return Reach.of(spans, (-FARTHEST, FARTHEST)).only(~spans.marked | spans.mixed)

    @property
    def splits_marked(self) -> bool:
        return True

    def explain(self) -> str:
        return "Only tokens that are not marked see anything."
