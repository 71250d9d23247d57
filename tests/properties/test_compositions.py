"""Whatever is composed on whatever rows, every backend agrees with the oracle."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.rule import Case, engines, judge
from longspan.layout import Layout
from longspan.patterns import Causal, Fixed, FromLocal, Full, GlobalTokens, Pattern, Strided, ToGlobal, Window

SIMPLE = st.one_of(
    st.builds(Window, st.integers(1, 90), dilation=st.integers(1, 5)),
    st.builds(Window, st.tuples(st.integers(1, 9), st.integers(1, 70))),
    st.builds(Strided, st.integers(2, 20)),
    st.builds(Fixed, st.integers(4, 20)),
    st.sampled_from([Full(), Causal(), GlobalTokens(), ToGlobal(), FromLocal()]),
)


def joined(parts: st.SearchStrategy[Pattern]) -> st.SearchStrategy[Pattern]:
    return st.builds(lambda a, b, join: join(a, b), parts, parts, st.sampled_from(JOINS))


JOINS = (Pattern.__or__, Pattern.__and__, Pattern.__add__)
PATTERNS = st.recursive(SIMPLE, joined, max_leaves=4)


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    lengths = draw(st.lists(st.integers(0, 140), min_size=1, max_size=3))
    marked = [draw(st.lists(st.integers(0, n - 1), max_size=3)) if n else [] for n in lengths]
    rows = Layout.packed(lengths, marked=marked, start=draw(st.integers(0, 9)))
    return rows.take(draw(st.permutations(range(rows.size)))) if draw(st.booleans()) else rows


@pytest.mark.parametrize("engine", engines())
@settings(max_examples=30)
@given(
    pattern=PATTERNS, rows=layouts(), size=st.sampled_from([1, 5, 64]), dropout=st.sampled_from([0.0, 0.4])
)
def test_every_backend_agrees_with_the_oracle(
    pattern: Pattern, rows: Layout, size: int, dropout: float, engine: str
) -> None:
    judge(Case(pattern, rows, size=size, dropout=dropout), torch.float32, engine)
