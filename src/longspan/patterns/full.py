"""Every token sees every token."""

from dataclasses import dataclass

import numpy as np

from longspan.layout import Site
from longspan.patterns.base import Pattern, counts
from longspan.shapes import IntArray


@dataclass(frozen=True, repr=False)
class Full(Pattern):
    """Unrestricted attention."""

    def count(self, q: Site, k: Site) -> IntArray:
        return counts(np.True_, q, k)

    @property
    def grain(self) -> int:
        return 0

    @property
    def shift(self) -> int:
        return 1

    def explain(self) -> str:
        return "Every token sees the whole document."

    @classmethod
    def examples(cls) -> tuple[Pattern, ...]:
        return (Full(),)
