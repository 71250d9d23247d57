"""Pictures of patterns."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

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
    save_pictures,
    sweep,
)

DOCS = Path(__file__).parents[3] / "docs"


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
    assert [line for line in lines if line.startswith("head")] == ["heads 0, 1", "head 2"]
    assert "head 2" in Window(1, dilation=(1, 1, 2)).draw(3, heads=[2])


@pytest.mark.parametrize("pattern", sweep(), ids=repr)
def test_every_pattern_draws_as_well_formed_svg(pattern: Pattern) -> None:
    layout = Layout.packed([30, 17], marked=[[0], [4]])
    for queries, keys in [(layout, None), (layout, layout.pool(5, 4)), (Layout.packed([0]), None)]:
        root = ElementTree.fromstring(pattern.draw(queries, keys, style="svg"))
        assert root.tag.endswith("svg")


def test_the_legend_names_the_parts_and_how_often_they_count() -> None:
    pattern = (BlockWindow(4) | GlobalBlocks(4)) + RandomBlocks(4, 3, "hf-eval")
    root = ElementTree.fromstring(pattern.draw(40, style="svg"))
    words = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert "GlobalBlocks(4), counted 4 times" in words
    assert "BlockWindow(4)" in words


def test_a_pattern_of_one_part_needs_no_legend() -> None:
    assert Full().draw(8, style="svg").count("Full()") == 2  # the title, seen and spoken


def test_the_pictures_of_the_documentation_are_up_to_date(tmp_path: Path) -> None:
    written = save_pictures(tmp_path)
    assert {path.stem for path in written} == set(gallery())
    for path in written:
        assert (DOCS / "pictures" / path.name).read_text(encoding="utf-8") == path.read_text(encoding="utf-8")


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
