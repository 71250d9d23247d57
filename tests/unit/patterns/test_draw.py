"""Pictures of patterns."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from longspan.layout import Layout
from longspan.patterns import (
    BlockWindow,
    Causal,
    Full,
    GlobalBlocks,
    GlobalTokens,
    Pattern,
    RandomBlocks,
    Window,
    gallery,
)
from longspan.patterns.svg import BRIGHT, COLORS, shaded
from sweep import sweep

DOCS = Path(__file__).parents[3] / "docs"


def words_of(pattern: Pattern, length: int = 40) -> list[str | None]:
    root = ElementTree.fromstring(pattern.draw(length, style="svg"))
    return [element.text for element in root.iter() if element.tag.endswith("text")]


def test_text_shows_marks_documents_and_counts() -> None:
    pattern = (Window(1) | GlobalTokens()) + GlobalTokens()
    assert pattern.draw(Layout.packed([4, 2], marked=[[0], []])).splitlines() == [
        "(Window(1) | GlobalTokens()) + GlobalTokens()",
        "   *",
        "0* 2 2 2 2",
        "1  2 ■ ■ ·",
        "2  2 ■ ■ ■",
        "3  2 · ■ ■",
        "",
        "0          ■ ■",
        "1          ■ ■",
    ]


def test_text_of_a_long_document_is_shaded() -> None:
    lines = Causal().draw(256).splitlines()
    assert len(lines) == 65
    assert lines[2].split() == ["4", "█", "▒", *["·"] * 62]


def test_text_shows_each_head_that_differs() -> None:
    lines = Window(1, dilation=(1, 1, 2)).draw(3).splitlines()
    assert [line for line in lines if line.startswith("head")] == ["heads 0 to 1", "head 2"]
    assert Window(1, dilation=(1, 1, 2)).draw(3, heads=[2]).splitlines()[1] == "head 2"


def test_heads_that_do_not_fit_are_counted() -> None:
    pattern = Window(tuple(range(1, 13)))
    assert pattern.draw(30).endswith("\n(and 3 more that are not drawn)")
    assert "3 more are not drawn." in words_of(pattern)


@pytest.mark.parametrize("pattern", sweep(), ids=repr)
def test_every_pattern_draws_as_well_formed_svg(pattern: Pattern) -> None:
    layout = Layout.packed([30, 17], marked=[[0], [4]])
    for queries, keys in [(layout, None), (layout, layout.pool(5, 4)), (Layout.packed([0]), None)]:
        root = ElementTree.fromstring(pattern.draw(queries, keys, style="svg"))
        assert root.tag.endswith("svg")


def test_the_legend_names_the_parts_and_how_often_they_count() -> None:
    pattern = (BlockWindow(4) | GlobalBlocks(4)) + RandomBlocks(4, 3, "hf-eval")
    words = words_of(pattern)
    place = words.index("GlobalBlocks(4)")
    assert words.index("BlockWindow(4)") < place
    assert "counted 4 times" in words[place:]
    twice = Window(3) + Window(2) + Window(1)
    assert "counted 2 to 3 times" in words_of(twice)


def test_the_legend_says_what_is_seen_and_does_not_repeat_the_title() -> None:
    assert Full().draw(8, style="svg").count("Full()") == 2  # the title, seen and spoken
    assert "Every token sees the whole document." in words_of(Full())


def test_the_share_is_that_of_the_pairs_inside_documents() -> None:
    assert "100.0% of the pairs" in Full().draw(Layout.packed([30, 10]), style="svg")


def test_a_picture_has_the_colors_it_needs_for_light_and_dark_pages() -> None:
    pattern = Window(3) | GlobalTokens()
    light, dark = pattern.draw(20, style="svg").split("@media (prefers-color-scheme: dark)")
    assert COLORS[0] in light
    assert BRIGHT[0] in dark
    assert COLORS[1] not in light  # no token is marked
    assert COLORS[1] in pattern.draw(Layout.packed([20], marked=[[0]]), style="svg")


def test_cells_are_merged_into_rectangles_or_parted_by_gaps() -> None:
    cells = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.5, 0.5]])
    assert list(shaded("p0", cells)) == [
        '<path class="p0" fill-opacity="0.62" d="M1 2h2v1h-2z"/>',
        '<path class="p0" d="M0 0h2v2h-2z"/>',
    ]
    (parted,) = shaded("p0", cells[:1], gap=0.1)
    assert parted.count("M") == 2


@pytest.mark.parametrize("name", gallery())
def test_the_pictures_of_the_documentation_are_up_to_date(name: str) -> None:
    kept = (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    assert kept == gallery()[name].draw("svg"), "run `make pictures`"


def test_the_page_on_patterns_shows_every_picture() -> None:
    page = (DOCS / "patterns.md").read_text(encoding="utf-8")
    assert all(f"pictures/{name}.svg" in page for name in gallery())


def test_the_python_on_the_page_runs() -> None:
    page, known = (DOCS / "patterns.md").read_text(encoding="utf-8"), dict(Pattern.registry)
    try:
        for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
            exec(block, {"print": str})
        assert Pattern.from_json({"pattern": "SameSegment"}).explain().startswith("Tokens of equal")
    finally:
        Pattern.registry.clear()
        Pattern.registry.update(known)


def test_the_json_on_the_page_is_read() -> None:
    page = (DOCS / "patterns.md").read_text(encoding="utf-8")
    (data,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert Pattern.from_json(json.loads(data)) == Window(256) | GlobalTokens()
