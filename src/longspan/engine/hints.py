"""A pattern that does not say how far it reaches is evaluated for every pair: what its author can write."""

import warnings
from collections.abc import Iterator

import numpy as np

from longspan.layout import Site
from longspan.patterns.base import Pattern

MANY_TILES = 1 << 13
"""Pairs of tiles: 32 Mi pairs of rows, about a quarter of a second."""
SAMPLE = 64


def advise(pattern: Pattern, queries: Site, keys: Site, tiles: int) -> None:
    """Warn, once for each pattern, if `tiles` pairs of tiles are to be evaluated for want of a hint."""
    if tiles < MANY_TILES:
        return
    for part in _without_hints(pattern):
        name = type(part).__name__
        warnings.warn(
            f"{name} does not say how far it reaches, so planning evaluates `count` for every pair of tokens:"
            f" seconds for 16,384 tokens, and 16 times as long for 65,536. {_repair(part, queries, keys)}",
            UserWarning,
            stacklevel=2,
        )


def _without_hints(pattern: Pattern) -> Iterator[Pattern]:
    """The parts that are the user's own and say neither where keys are nor that pairs are alike."""
    parts: tuple[Pattern, ...] = getattr(pattern, "parts", ())
    for part in parts:
        yield from _without_hints(part)
    silent = type(pattern).reach is Pattern.reach and not pattern.shift and pattern.grain == 1
    if silent and not parts and not type(pattern).__module__.startswith("longspan."):
        yield pattern


def _repair(pattern: Pattern, queries: Site, keys: Site) -> str:
    """The method to write; what a sample of queries sees tells how it may look."""
    farthest = _farthest(pattern, queries, keys)
    alike = "If `count` reads positions only by their difference, give it `shift = 1` as well."
    if farthest is None or 4 * farthest > keys.length.max(initial=0):
        return f"If it sees only a part of each document, give it the method `reach(self, spans)`. {alike}"
    sampled = f"Of {SAMPLE} queries tried none sees a key more than {farthest} positions away."
    hint = f"Reach.of(spans, (spans.lo - {farthest}, spans.hi + {farthest}))"
    method = f"`def reach(self, spans): return {hint}`, with the distance from its fields"
    return f"{sampled} If that is so for all, give the class {method}. {alike}"


def _farthest(pattern: Pattern, queries: Site, keys: Site) -> int | None:
    """The largest distance between a query of a sample and a key that it sees; None if they see nothing."""
    rows = np.unique(np.linspace(0, queries.position.size - 1, SAMPLE).astype(np.int64))
    farthest = -1
    for row in rows:
        query, near = queries[row : row + 1], keys.document == queries.document[row]
        found = np.broadcast_to(pattern.count(query, keys[near]), (int(np.count_nonzero(near)),)) > 0
        distance = np.abs(keys.position[near][found].astype(np.int64) - query.position[0])
        farthest = max(farthest, int(distance.max(initial=-1)))
    return None if farthest < 0 else farthest
