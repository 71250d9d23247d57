"""Patterns are values: compared, hashed, written as JSON, and refused when they make no sense."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from longspan.errors import InputError
from longspan.layout import Layout
from longspan.patterns import (
    BlockWindow,
    ByLength,
    Causal,
    Fixed,
    Full,
    GlobalBlocks,
    GlobalTokens,
    Intersection,
    Pattern,
    RandomBlocks,
    Strided,
    Sum,
    ToGlobal,
    Union,
    Window,
)
from sweep import sweep


@pytest.mark.parametrize("pattern", sweep(), ids=repr)
def test_a_pattern_comes_back_from_json_equal(pattern: Pattern) -> None:
    again = Pattern.from_json(json.loads(json.dumps(pattern.to_json())))
    assert again == pattern
    assert hash(again) == hash(pattern)
    assert repr(again) == repr(pattern)


@pytest.mark.parametrize("pattern", sweep(), ids=repr)
def test_one_heads_pattern_comes_back_from_json_too(pattern: Pattern) -> None:
    one = pattern.head(0)
    assert Pattern.from_json(one.to_json()) == one
    assert one.heads_declared is None
    assert one.head(0) == one


@pytest.mark.parametrize("pattern", sweep(), ids=repr)
def test_a_pattern_reads_as_the_python_that_makes_it(pattern: Pattern) -> None:
    assert eval(repr(pattern), dict(Pattern.registry)) == pattern


@pytest.mark.parametrize("pattern", sweep(), ids=repr)
def test_a_pattern_explains_itself_in_sentences(pattern: Pattern) -> None:
    lines = pattern.explain().splitlines()
    assert lines
    assert all(line.strip()[0].isupper() and line[-1] in ".:" for line in lines)


def test_patterns_differ_where_their_values_do() -> None:
    assert len(set(sweep())) == len(sweep())
    assert Window(3) == Window(left=3, right=3) != Window(left=3, right=0)


def test_equal_heads_have_equal_patterns() -> None:
    pattern = Window(4, dilation=(1, 1, 2, 2)) & Causal()
    assert pattern.head(0) == pattern.head(1) != pattern.head(2) == pattern.head(3)
    assert pattern.heads_declared == 4


def test_composites_are_flat() -> None:
    assert (Full() | Causal() | Window(1)) == Union((Full(), Causal(), Window(1)))
    assert ((Full() & Causal()) & Window(1)) == Intersection((Full(), Causal(), Window(1)))
    assert (Full() + (Causal() + Window(1))) == Sum((Full(), Causal(), Window(1)))
    assert (Full() | Causal()) & Window(1) == Intersection((Union((Full(), Causal())), Window(1)))


def test_a_window_may_be_written_by_its_radius_in_json() -> None:
    assert Pattern.from_json({"pattern": "Window", "radius": [1, 2]}) == Window((1, 2))


def test_a_new_pattern_registers_itself() -> None:
    class Nothing(Full):
        pass

    try:
        assert Pattern.from_json({"pattern": "Nothing"}) == Nothing()
    finally:
        del Pattern.registry["Nothing"]


def test_only_patterns_combine() -> None:
    for combine in (lambda: Full() | 1, lambda: Full() & None, lambda: Full() + "x"):  # type: ignore[operator]
        with pytest.raises(TypeError):
            combine()


SITE = Layout.packed([5]).sites


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Window(0), "`radius` must be at least 1, but is 0. Use Full() for unrestricted attention."),
        (lambda: Window(-3), "`radius` must be at least 1, but is -3"),
        (lambda: Window(2**30), "`radius` must be at most 1073741823, but is 1073741824"),
        (lambda: Window(2.5), "`radius` must be a whole number, but is 2.5"),  # type: ignore[arg-type]
        (lambda: Window(True), "`radius` must be a whole number, but is True"),
        (lambda: Window("3"), "`radius` must be a whole number, but is '3'"),  # type: ignore[arg-type]
        (lambda: Window(()), "`radius` must be one number per head"),
        (lambda: Window(), "`Window` must be given `radius`, or else both"),
        (lambda: Window(left=3), "Write None for a side without limit and 0 for none"),
        (lambda: Window(3, left=1, right=1), "`Window` must be given `radius`, or else both"),
        (lambda: Window(left=-1, right=0), "`left` must be at least 0, but is -1"),
        (lambda: Window(3, dilation=0), "`dilation` must be at least 1, but is 0"),
        (lambda: Window(3, dilation=None), "`dilation` must be at least 1, but is None"),  # type: ignore[arg-type]
        (lambda: Window((1, 2), dilation=(1, 2, 3)), "lists for one number of heads, but is {2, 3}"),
        (lambda: Window((1, 2)).head(2), "`h` must be one of the 2 heads listed, counted from 0, but is 2"),
        (lambda: Window((1, 2)).count(SITE, SITE), "pick one with .head(h)"),
        (lambda: Window((1, 2)) | Window((1, 2, 3)), "made for one number of heads"),
        (lambda: BlockWindow(0), "`block` must be at least 1, but is 0"),
        (lambda: BlockWindow(4, radius=-1), "`radius` must be at least 0, but is -1"),
        (lambda: GlobalBlocks(4, first=-1), "`first` must be at least 0, but is -1"),
        (lambda: Strided(0), "`stride` must be at least 1, but is 0"),
        (lambda: Fixed(4, summary=5), "`summary` must be at most the block's 4 tokens, but is 5"),
        (lambda: ByLength(-1, Full(), Full()), "`limit` must be at least 0, but is -1"),
        (lambda: ByLength(3, Full(), 4), "`long` must be a pattern, but is 4"),  # type: ignore[arg-type]
        (lambda: ByLength(3, Window((1, 2)), Window((1,))), "made for one number of heads"),
        (lambda: Union((Full(),)), "`parts` must be two patterns or more"),
        (lambda: RandomBlocks(4, 3, "hf"), "one of tf, hf-train, hf-eval, uniform, none, but is 'hf'"),
        (lambda: RandomBlocks(4, -1, "none"), "`count` must be at least 0, but is -1"),
        (lambda: RandomBlocks(4, 1, "tf", seed=2**32), "`seed` must be less than 2**32"),
        (lambda: RandomBlocks(48, 1, "tf"), "`table` must be a multiple of the block, 48, but is 4096"),
        (lambda: RandomBlocks(4, 1, "tf", heads=2).head(2), "one of the 2 heads, counted from 0, but is 2"),
        (lambda: RandomBlocks(1, 1, "uniform").count(SITE, SITE), "Every head draws for itself"),
        (lambda: Pattern.from_json({"radius": 3}), '`data` must be a mapping with the key "pattern"'),
        (lambda: Pattern.from_json({"pattern": "Windows"}), "but is 'Windows'"),
        (lambda: Pattern.from_json({"pattern": "Window", "width": 3}), "`key` must be one of radius, left"),
        (lambda: Pattern.from_json({"pattern": "BlockWindow"}), "missing 1 required positional argument"),
        (lambda: GlobalTokens().draw(8, style="png"), "`style` must be text or svg, but is 'png'"),
        (lambda: ToGlobal().draw("8"), "`queries` must be a Layout or the length of one document"),  # type: ignore[arg-type]
        (lambda: Full().draw(2**14), "Draw a shorter document"),
    ],
)
def test_bad_values_are_refused_with_the_value_and_the_repair(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert words in str(caught.value)
