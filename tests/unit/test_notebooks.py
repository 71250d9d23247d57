"""In notebooks patterns, plans, layouts, models and Readers show themselves: small, escaped and at once."""

import re
import time
from base64 import b64decode
from typing import Any
from xml.etree import ElementTree

import pytest

import longspan as ls
from longspan import html, patterns
from longspan.families.registry import presets
from longspan.patterns.gallery import gallery
from longspan.reader import Reader
from unit.tasks.tiny import FAMILIES, reader, summariser, tokenizer

LAYOUT = ls.Layout.packed([70, 41, 0], marked=[[0], [0, 5], []])
SHOWN: dict[str, Any] = {
    "window": patterns.Window(256),
    "causal": patterns.Window(3, dilation=2) & patterns.Causal(),
    "blocks": patterns.BlockWindow(64) | patterns.GlobalBlocks(64) | patterns.RandomBlocks(64, 3, "uniform"),
    "layout": LAYOUT,
    "padded": ls.Layout.padded([[True, True, False]]),
    "empty": ls.Layout.packed([]),
    "many": ls.Layout.packed([5] * 1000, marked=[range(5)] * 1000),
    "plan": ls.plan(patterns.Window(64) | patterns.GlobalTokens(), ls.Layout.packed([4096]), heads=12),
    "cross": ls.plan(patterns.Full(), ls.Layout.packed([9]), ls.Layout.packed([20]), heads=1),
    "reader": reader("longformer", "classify"),
    "summarizer": summariser(),
} | {family: reader(family, "encode").model for family in FAMILIES}


def pictures(shown: str) -> list[ElementTree.Element]:
    """The pictures inside, parsed."""
    return [ElementTree.fromstring(b64decode(data)) for data in re.findall(r"base64,([\w+/=]+)", shown)]


@pytest.mark.parametrize("name", SHOWN)
def test_it_is_small_and_well_formed(name: str) -> None:
    shown = SHOWN[name]._repr_html_()
    assert len(shown) < 200_000
    ElementTree.fromstring(f"<div>{shown}</div>")
    assert "<script" not in shown
    for picture in pictures(shown):
        assert picture.tag.endswith("svg")


@pytest.mark.parametrize("name", gallery())
def test_every_pattern_of_the_gallery_is_drawn(name: str) -> None:
    assert len(pictures(gallery()[name].pattern._repr_html_())) == 1


def test_it_takes_milliseconds() -> None:
    large = {
        "reader": SHOWN["reader"],
        "plan": ls.plan(patterns.Window(256) | patterns.GlobalTokens(), ls.Layout.packed([65536]), heads=12),
        "layout": ls.Layout.packed([100_000] * 10, marked=[range(0, 100_000, 100)] * 10),
        "pattern": SHOWN["blocks"],
    }
    for value in large.values():
        value._repr_html_()  # imports and caches
        start = time.perf_counter()
        value._repr_html_()
        assert time.perf_counter() - start < 1  # some ms on a machine with nothing else to do


def test_facts_are_told() -> None:
    plan = SHOWN["plan"]._repr_html_()
    for word in ("Window(64) | GlobalTokens()", "4,096", "12", f"{SHOWN['plan'].pairs_allowed:,}"):
        assert word in plan
    found = reader("longformer", "classify", overflow="window")._repr_html_()
    for word in ("classify", "Longformer", "64 tokens", "window", "LABEL_0, LABEL_1, LABEL_2", "16 wide"):
        assert word in found
    assert "9 × 20" in SHOWN["cross"]._repr_html_()
    assert "and 992 more" in SHOWN["many"]._repr_html_()
    (bars,) = pictures(SHOWN["layout"]._repr_html_())
    assert len(bars.findall("{*}rect")) == 3 + 3  # documents and marked tokens
    assert len(pictures(SHOWN["longformer"]._repr_html_())) == 2  # local and global rows
    assert SHOWN["longformer"].backbone._repr_html_().count("<img") == 2


def test_what_users_name_is_escaped() -> None:
    made, evil = reader("bert", "classify"), "<script>alert('x')</script>&"
    found = Reader(made.model, tokenizer("bert"), labels=[evil, "b", "c"], prompts={evil: evil})
    assert "<script" not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()
    assert "<" not in html.image("<svg/>", "<a> & 'b'").removeprefix("<img").removesuffix("/>")


@pytest.mark.parametrize("name", ["longformer-base", "bigbird-base"])
def test_a_large_model_is_drawn_from_its_config_alone(name: str) -> None:
    from longspan.families.notebook import model_html

    shown = model_html(name, presets()[name].encoder)
    assert "768" in shown
    assert pictures(shown)
