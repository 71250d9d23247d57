"""Tokens that nobody sees, as a layout's tags tell them apart."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longspan.errors import bad
from longspan.layout import Site
from longspan.patterns.base import Pattern, counts
from longspan.shapes import IntArray


@dataclass(frozen=True, repr=False)
class ToUntagged(Pattern):
    """A token sees the tokens whose tag is 0, itself too only if its own is: ColBERT's query expansion.

    In a layout without that tag all tokens see each other.
    """

    step: ClassVar[int] = 0

    tag: str

    def __post_init__(self) -> None:
        if not isinstance(self.tag, str) or not self.tag:
            raise bad("tag", "the name of a tag", self.tag)

    def count(self, q: Site, k: Site) -> IntArray:
        return counts(k.tags.get(self.tag, np.zeros((), np.int32)) == 0, q, k)

    def explain(self) -> str:
        return f"A token sees the tokens without {self.tag}."
