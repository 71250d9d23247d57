"""Every token sees every token."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longspan.layout import Site
from longspan.patterns.base import Pattern, counts
from longspan.shapes import IntArray


@dataclass(frozen=True, repr=False)
class Full(Pattern):
    """Every token sees the whole document."""

    grain: ClassVar[int] = 0
    shift: ClassVar[int] = 1

    def count(self, q: Site, k: Site) -> IntArray:
        return counts(np.True_, q, k)
