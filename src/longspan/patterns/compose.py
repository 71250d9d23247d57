"""Patterns made of patterns: what `|`, `&` and `+` return."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial, reduce
from math import gcd, lcm
from textwrap import indent
from typing import ClassVar

import numpy as np

from longspan.errors import bad
from longspan.layout import Site
from longspan.patterns.base import Pattern, Reach, Spans
from longspan.shapes import BoolArray, IntArray


@dataclass(frozen=True, repr=False)
class _Composite(Pattern):
    """Several patterns read as one; the subclasses say how their counts are joined."""

    parts: tuple[Pattern, ...]
    sign: ClassVar[str]
    rule: ClassVar[str]

    def __post_init__(self) -> None:
        if len(self.parts) < 2 or not all(isinstance(part, Pattern) for part in self.parts):
            raise bad("parts", "two patterns or more", self.parts)
        declared = {part.heads_declared for part in self.parts} - {None}
        if len(declared) > 1:
            raise bad("parts", "made for one number of heads", declared)

    def reach(self, spans: Spans) -> Reach:
        return reduce(Reach.__or__, (part.reach(spans) for part in self.parts))

    @property
    def step(self) -> int:
        return common_step(part.step for part in self.parts)

    @property
    def grain(self) -> int:
        return gcd(*(part.grain for part in self.parts))

    @property
    def shift(self) -> int:
        return lcm(*(part.shift for part in self.parts))

    @property
    def splits_marked(self) -> bool:
        return any(part.splits_marked for part in self.parts)

    def landmarks(self, k: Site) -> BoolArray:
        return reduce(np.logical_or, (part.landmarks(k) for part in self.parts))

    @property
    def heads_declared(self) -> int | None:
        return next((part.heads_declared for part in self.parts if part.heads_declared), None)

    def head(self, h: int) -> Pattern:
        return type(self)(tuple(part.head(h) for part in self.parts))

    def at(self, length: int) -> Pattern:
        return type(self)(tuple(part.at(length) for part in self.parts))

    def drawn_parts(self) -> list[tuple[Pattern, Pattern]]:
        return [drawn for part in self.parts for drawn in part.drawn_parts()]

    def explain(self) -> str:
        return f"{self.rule}:\n" + "\n".join(indent(part.explain(), "  ") for part in self.parts)

    def __repr__(self) -> str:
        return self.sign.join(f"({p!r})" if isinstance(p, _Composite) else repr(p) for p in self.parts)


@dataclass(frozen=True, repr=False)
class Union(_Composite):
    """The larger count of the parts: what any of them allows."""

    sign: ClassVar[str] = " | "
    rule: ClassVar[str] = "Allowed if any of these allows it"

    def count(self, q: Site, k: Site) -> IntArray:
        return reduce(np.maximum, (part.count(q, k) for part in self.parts))


@dataclass(frozen=True, repr=False)
class Intersection(_Composite):
    """The smaller count of the parts: what all of them allow."""

    sign: ClassVar[str] = " & "
    rule: ClassVar[str] = "Allowed only where all of these allow it"

    def count(self, q: Site, k: Site) -> IntArray:
        return reduce(np.minimum, (part.count(q, k) for part in self.parts))

    def reach(self, spans: Spans) -> Reach:
        return reduce(Reach.__and__, (part.reach(spans) for part in self.parts))

    @property
    def step(self) -> int:
        return max(part.step for part in self.parts)

    def drawn_parts(self) -> list[tuple[Pattern, Pattern]]:
        first, *others = self.parts
        inner = first.drawn_parts()
        if len(inner) == 1:
            return [(self, self)]
        return [(shown, Intersection((part, *others))) for shown, part in inner]


@dataclass(frozen=True, repr=False)
class Sum(_Composite):
    """The counts added up: a key allowed by two parts is counted twice."""

    sign: ClassVar[str] = " + "
    rule: ClassVar[str] = "Counted once for each of these that allows it"

    def count(self, q: Site, k: Site) -> IntArray:
        # Parts count in int8, their sum may not fit.
        return reduce(partial(np.add, dtype=np.int32), (part.count(q, k) for part in self.parts))


def common_step(steps: Iterable[int]) -> int:
    """The step that parts agree on: 0 has no opinion, and those that disagree settle on 1."""
    opinions = {step for step in steps if step}
    return opinions.pop() if len(opinions) == 1 else int(len(opinions) > 1)
