"""Tokens of one group, as a layout's tags tell them apart."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longspan.errors import bad
from longspan.layout import Site
from longspan.patterns.base import Pattern, counts
from longspan.shapes import IntArray


@dataclass(frozen=True, repr=False)
class SameTag(Pattern):
    """A token sees the tokens whose tag is its own: those of its paragraph, say (ETC, section 3).

    Rows of a layout without that tag are all of one group.
    """

    step: ClassVar[int] = 0

    tag: str

    def __post_init__(self) -> None:
        if not isinstance(self.tag, str) or not self.tag:
            raise bad("tag", "the name of a tag", self.tag)

    def count(self, q: Site, k: Site) -> IntArray:
        zero = np.zeros((), np.int32)
        return counts(q.tags.get(self.tag, zero) == k.tags.get(self.tag, zero), q, k)

    def explain(self) -> str:
        return f"A token sees the tokens of its own {self.tag}."
