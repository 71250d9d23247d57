"""Every backend, every pattern, every dtype, awkward sizes: results and gradients as good as plain code's."""

import pytest
import torch

from conformance.rule import Case, everywhere, judge
from longspan.layout import Layout
from longspan.patterns import Causal, Full, GlobalTokens, Pattern, Window
from sweep import sweep
from unit.patterns.places import PLACES

SIZES = (1, 63, 64, 65, 131)
HEAD_SIZES = (1, 7, 32, 64, 80)
PATTERNS = sweep()
ALL_SIZES = Layout.packed(SIZES, marked=[[0], [], [0, 63], [3], [0, 64, 130]])


@everywhere()
@pytest.mark.parametrize("pattern", PATTERNS, ids=repr)
def test_every_pattern_is_computed_right(pattern: Pattern, dtype: torch.dtype, engine: str) -> None:
    size = HEAD_SIZES[PATTERNS.index(pattern) % len(HEAD_SIZES)]
    judge(Case(pattern, ALL_SIZES, size=size), dtype, engine)


@everywhere()
@pytest.mark.parametrize("size", HEAD_SIZES)
@pytest.mark.parametrize("length", SIZES)
def test_every_size_is_computed_right(length: int, size: int, dtype: torch.dtype, engine: str) -> None:
    judge(Case(Window(9) | GlobalTokens(), Layout.packed([length], marked=[[0]]), size=size), dtype, engine)


@everywhere()
@pytest.mark.parametrize("place", PLACES)
def test_every_kind_of_layout_is_computed_right(place: str, dtype: torch.dtype, engine: str) -> None:
    queries, keys = PLACES[place]
    judge(Case((Window(6) | GlobalTokens()) + Window(2, dilation=3), queries, keys), dtype, engine)


@everywhere(torch.float32, torch.float64)
@pytest.mark.parametrize("pattern", [Full(), Causal() | GlobalTokens()], ids=repr)
def test_a_few_rows_over_thousands_of_keys_are_computed_right(
    pattern: Pattern, dtype: torch.dtype, engine: str
) -> None:
    rows = Layout.packed([9000], marked=[[0, 4000, 8999]])
    judge(Case(pattern, rows.take([5, 8990, 4000, 0]), rows, size=3, dropout=0.1), dtype, engine)
