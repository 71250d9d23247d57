"""A different pattern for short documents."""

from dataclasses import dataclass

import numpy as np

from longspan.errors import bad, whole
from longspan.layout import Site
from longspan.patterns.base import Pattern, Reach, Spans
from longspan.patterns.compose import common_step
from longspan.shapes import BoolArray, IntArray


@dataclass(frozen=True, repr=False)
class ByLength(Pattern):
    """`short` for documents of at most `limit` tokens, `long` for the others, each document for itself."""

    limit: int
    short: Pattern
    long: Pattern

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", whole("limit", self.limit, 0))
        for name in ("short", "long"):
            if not isinstance(getattr(self, name), Pattern):
                raise bad(name, "a pattern", getattr(self, name))
        declared = {part.heads_declared for part in (self.short, self.long)} - {None}
        if len(declared) > 1:
            raise bad("short and long", "made for one number of heads", declared)

    def count(self, q: Site, k: Site) -> IntArray:
        is_short = q.length <= self.limit
        if is_short.all():
            return self.short.count(q, k)
        if not is_short.any():
            return self.long.count(q, k)
        return np.where(is_short, self.short.count(q, k), self.long.count(q, k))

    def reach(self, spans: Spans) -> Reach:
        is_short: BoolArray = spans.length <= self.limit
        return self.short.reach(spans).only(is_short) | self.long.reach(spans).only(~is_short)

    @property
    def step(self) -> int:
        return common_step((self.short.step, self.long.step))

    @property
    def grain(self) -> int:
        return int(np.gcd(self.short.grain, self.long.grain))

    @property
    def splits_marked(self) -> bool:
        return self.short.splits_marked or self.long.splits_marked

    def landmarks(self, k: Site) -> BoolArray:
        return self.short.landmarks(k) | self.long.landmarks(k)

    @property
    def heads_declared(self) -> int | None:
        return self.short.heads_declared or self.long.heads_declared

    def head(self, h: int) -> Pattern:
        return ByLength(self.limit, self.short.head(h), self.long.head(h))

    def at(self, length: int) -> Pattern:
        return (self.short if length <= self.limit else self.long).at(length)

    def explain(self) -> str:
        return (
            f"In documents of at most {self.limit} tokens: {self.short.explain()}\n"
            f"In longer ones: {self.long.explain()}"
        )
