"""Score terms and dropout mean the same in every backend, gradients included."""

from dataclasses import dataclass

import pytest
import torch

from conformance.rule import Case, everywhere, judge
from longspan.engine.labels import ClippedDistance, Labels
from longspan.engine.relations import Relations
from longspan.layout import Layout, Site
from longspan.patterns import Causal, Full, GlobalTokens, Pattern, Window
from longspan.shapes import IntArray


@dataclass(frozen=True)
class Colours:
    """A label that has nothing to do with distance."""

    size: int = 11

    def label(self, q: Site, k: Site) -> IntArray:
        return (3 * q.tags["color"] + k.tags["color"] + k.position * k.marked) % 11


LENGTHS = (1, 64, 131)
ROWS = Layout.packed(LENGTHS, marked=[[], [0], [0, 77]], tags={"color": [i * i % 5 for i in range(196)]})
PATTERNS = (
    Window(9) | GlobalTokens(),
    Window((5, 70), dilation=(3, 1)) & Causal(),
    Full() + Window(4),
)
ALL = frozenset({"relative", "content", "table"})
LABELS = (ClippedDistance(16), ClippedDistance(200), Colours(), Relations(distance=5, size=17))


@everywhere()
@pytest.mark.parametrize("labels", LABELS, ids=repr)
@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_terms_are_computed_right(pattern: Pattern, labels: Labels, dtype: torch.dtype, engine: str) -> None:
    judge(Case(pattern, ROWS, labels=labels, terms=ALL), dtype, engine)


@everywhere(torch.float32)
@pytest.mark.parametrize("size", [1, 64, 80])
@pytest.mark.parametrize("chosen", ["relative", "relative content", "table"])
def test_each_term_may_stand_alone(chosen: str, size: int, dtype: torch.dtype, engine: str) -> None:
    case = Case(PATTERNS[0], ROWS, size=size, labels=LABELS[0], terms=frozenset(chosen.split()))
    judge(case, dtype, engine)


@everywhere()
@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_dropout_drops_the_same_pairs_everywhere(pattern: Pattern, dtype: torch.dtype, engine: str) -> None:
    judge(Case(pattern, ROWS, dropout=0.3), dtype, engine)


@everywhere(torch.float32)
def test_dropout_and_terms_go_together(dtype: torch.dtype, engine: str) -> None:
    judge(Case(PATTERNS[0], ROWS, labels=LABELS[2], terms=ALL, dropout=0.6), dtype, engine)
