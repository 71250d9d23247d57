"""Hard masks between tokens and the global tokens that stand for them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longspan.errors import bad
from longspan.layout import Site
from longspan.patterns.base import Pattern, counts
from longspan.shapes import BoolArray, IntArray

LINKS = ("parent", "paragraph", "linked")
"""Tags of a token that name the marked tokens it belongs to, by position; labels read them all."""
NOWHERE = -2
FREE = "free"
"""The tag of rows that see everything in the other stream, whatever belongs to them."""


@dataclass(frozen=True, repr=False)
class Belongs(Pattern):
    """Between tokens and marked tokens, only what belongs together sees each other: meant for `&`.

    A token belongs to the marked tokens of its document whose positions stand in its `tags` (-1: to none).
    A row whose tag `free` is not 0 sees everything all the same. Pairs of two tokens or of two marked tokens
    are not restricted (ETC, section 3.1).
    """

    step: ClassVar[int] = 0
    splits_marked: ClassVar[bool] = True

    tags: tuple[str, ...] = ("parent", "paragraph")

    def __post_init__(self) -> None:
        if not self.tags or not all(isinstance(tag, str) and tag for tag in self.tags):
            raise bad("tags", "names of tags", self.tags)

    def count(self, q: Site, k: Site) -> IntArray:
        free = q.tags.get(FREE, np.zeros((), np.int32)) != 0
        return counts((q.marked == k.marked) | free | belongs(q, k, self.tags), q, k)

    def explain(self) -> str:
        return "Tokens and marked tokens see each other only where one belongs to the other."


def belongs(q: Site, k: Site, tags: Iterable[str]) -> BoolArray:
    """Whether one of a pair is marked and the other a token that belongs to it, by any of the tags."""
    linked = np.zeros(np.broadcast_shapes(q.shape, k.shape), bool)
    for token, top in ((q, k), (k, q)):
        if top.marked.any() and not token.marked.all():
            places = np.where(top.marked, top.position, NOWHERE)
            for links in (token.tags[tag] for tag in tags if tag in token.tags):
                linked |= np.where(token.marked, -1, links) == places
    return linked
