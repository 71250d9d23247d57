"""The sliding window, also one-sided, dilated, unlimited, and different for each head."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import ClassVar, TypeAlias

from longspan.errors import FARTHEST, InputError, bad, whole
from longspan.layout import Site
from longspan.patterns.base import Pattern, Reach, Spans, counts
from longspan.shapes import IntArray

Side: TypeAlias = int | Sequence[int | None] | None
_PerHead: TypeAlias = int | tuple[int | None, ...] | None


@dataclass(frozen=True, init=False, repr=False)
class Window(Pattern):
    """Keys at offsets t * dilation with -left <= t <= right (Longformer, section 3.1).

    `Window(radius)` is left = right = radius; None means unlimited. Each value may be a tuple, one per head.
    A pooled slot is seen where its center lies.

    >>> Window(2, dilation=3).explain()
    'A token sees itself, 2 tokens to the left and 2 to the right, at steps of 3.'
    """

    shift: ClassVar[int] = 1

    left: int | tuple[int | None, ...] | None
    right: int | tuple[int | None, ...] | None
    dilation: int | tuple[int, ...]

    def __init__(
        self,
        radius: Side | EllipsisType = ...,
        *,
        left: Side | EllipsisType = ...,
        right: Side | EllipsisType = ...,
        dilation: int | Sequence[int] = 1,
    ) -> None:
        present = [value is not ... for value in (radius, left, right)]
        if present == [True, False, False]:
            left = right = _each("radius", radius, 1, "Use Full() for unrestricted attention.")
        elif present != [False, True, True]:
            raise InputError(
                "`Window` must be given `radius`, or else both `left` and `right`. "
                "Write None for a side without limit and 0 for none."
            )
        object.__setattr__(self, "left", _each("left", left, 0))
        object.__setattr__(self, "right", _each("right", right, 0))
        object.__setattr__(self, "dilation", _each("dilation", dilation, 1))
        sizes = {len(value) for value in self._values if isinstance(value, tuple)}
        if len(sizes) > 1:
            raise bad("left, right and dilation", "lists for one number of heads", sizes)
        if self.dilation is None or (isinstance(self.dilation, tuple) and None in self.dilation):
            raise bad("dilation", "at least 1", None)

    def count(self, q: Site, k: Site) -> IntArray:
        left, right, dilation = self._one_head()
        allowed = k.position <= q.position + right
        allowed &= k.position >= q.position - left
        if dilation > 1:
            allowed &= k.position % dilation == q.position % dilation
        return counts(allowed, q, k)

    def reach(self, spans: Spans) -> Reach:
        left, right, dilation = self._one_head()
        return Reach.of(spans, (spans.lo - left, spans.hi + right), step=[dilation])

    @property
    def step(self) -> int:
        return self._one_head()[2]

    @property
    def heads_declared(self) -> int | None:
        return next((len(value) for value in self._values if isinstance(value, tuple)), None)

    def head(self, h: int) -> Pattern:
        declared = self.heads_declared
        if declared is None:
            return self
        if not 0 <= h < declared:
            raise bad("h", f"one of the {declared} heads listed, counted from 0", h)
        left, right = (side[h] if isinstance(side, tuple) else side for side in (self.left, self.right))
        dilation = self.dilation[h] if isinstance(self.dilation, tuple) else self.dilation
        return Window(left=left, right=right, dilation=dilation)

    def explain(self) -> str:
        if self.heads_declared is not None:
            rows = [f"Head {h}: {self.head(h).explain()}" for h in range(self.heads_declared)]
            return "\n".join(rows)
        left, right = ("all" if side is None else side for side in (self.left, self.right))
        step = f", at steps of {self.dilation}" if self.dilation != 1 else ""
        return f"A token sees itself, {left} tokens to the left and {right} to the right{step}."

    def __repr__(self) -> str:
        sides = f"{self.left}" if self.left == self.right else f"left={self.left}, right={self.right}"
        return f"Window({sides}{f', dilation={self.dilation}' if self.dilation != 1 else ''})"

    @property
    def _values(self) -> tuple[_PerHead, _PerHead, _PerHead]:
        return self.left, self.right, self.dilation

    def _one_head(self) -> tuple[int, int, int]:
        """Reach to the left and right in positions, and the dilation."""
        left, right, dilation = self._values
        if isinstance(left, tuple) or isinstance(right, tuple) or not isinstance(dilation, int):
            raise bad("pattern", "one head's", self, "It lists a value per head: pick one with .head(h).")
        left, right = (FARTHEST if t is None else min(t * dilation, FARTHEST) for t in (left, right))
        return left, right, dilation


def _each(name: str, value: object, least: int, repair: str = "") -> _PerHead:
    """The checked value, or the tuple of checked values, one per head; None stays None."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        if not value:
            raise bad(name, "one number per head", value)
        return tuple(None if item is None else whole(name, item, least, repair) for item in value)
    return None if value is None else whole(name, value, least, repair)
