"""Pictures of models: what they show, and that they need nothing but themselves."""

import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import longspan
from longspan.errors import InputError
from longspan.families.bigbird.model import BigBirdConfig
from longspan.families.longformer.model import LongformerConfig
from longspan.families.registry import presets
from longspan.inspect.picture import WIDTH, Picture, draw
from longspan.layout import Layout
from longspan.patterns import Full, GlobalTokens, Window
from unit.families.tiny import SIZES
from unit.inspect.models import subjects

DOCS = Path(__file__).parents[3] / "docs"
SHOWN = {
    "longformer-base": None,
    "bigbird-base": None,
    "poolingformer-base": None,
    "etc-base": None,
    "default": 1024,
}
"""The pictures of the documentation, as `make pictures` draws them."""


def words_of(picture: Picture) -> list[str]:
    root = ElementTree.fromstring(picture.svg())
    return [element.text or "" for element in root.iter() if element.tag.endswith("text")]


def titles_of(picture: Picture) -> list[str]:
    return [panel.title for panel in picture.panels(32)[0]]


@pytest.mark.parametrize("name", subjects())
def test_every_model_draws_as_svg_and_text(name: str) -> None:
    picture = draw(subjects()[name], 131)
    root = ElementTree.fromstring(picture.svg())
    assert root.tag.endswith("svg")
    for element in root.iter():
        if element.tag.endswith("text"):
            assert 0 <= float(element.attrib["x"]) <= WIDTH
    lines = picture.text().splitlines()
    assert lines[0].startswith(f"{picture.subject.name}: ")
    assert max(map(len, lines)) < 140
    assert any("can know of after each layer" in line for line in lines)


def test_a_picture_needs_nothing_but_itself() -> None:
    text = draw("longformer-base", 600).svg()
    assert re.findall(r"https?://[^\"'\s]+", text) == ["http://www.w3.org/2000/svg"]
    for way_out in ("<script", "href", "url(", "@import", "<image", "<foreignObject"):
        assert way_out not in text


def test_equal_layers_and_calls_between_the_same_rows_share_a_panel() -> None:
    (panel,), left_out = draw("longformer-base", 700).panels(32)
    assert (panel.title, panel.sources, left_out) == ("layers 0 to 11", "window, global rows", 0)
    assert [part.name for part in panel.parts if part] == ["Window(256)", "ToGlobal()", "Full()"]
    assert titles_of(draw("poolingformer-base", 700)) == ["layers 0 to 11", "layers 7 to 9"]
    assert titles_of(draw("default", 700)) == ["layers 0 to 3", "layers 4 to 5"]


def test_a_panel_shades_cells_by_what_is_allowed() -> None:
    picture = draw(LongformerConfig(**SIZES, radius=9), 120, marked=[3])
    (panel,), _ = picture.panels(30)
    local, apart = picture.calls[0]
    dense = local.pattern.matrix(local.queries) > 0
    dense[3] = apart.pattern.matrix(apart.queries, apart.keys) > 0
    share = dense.reshape(30, 4, 30, 4).mean(axis=(1, 3))
    assert np.allclose(panel.share, share)
    assert panel.allowed == dense.mean()
    assert np.flatnonzero(panel.marked_rows).tolist() == [0]


def test_heads_that_differ_are_drawn_apart() -> None:
    config = LongformerConfig(**SIZES, radius=4, dilation=(1, (1, 3), 1))
    assert titles_of(draw(config, 100)) == ["layers 0 and 2", "layer 1, head 0", "layer 1, head 1"]


def test_more_panels_than_fit_are_counted() -> None:
    config = BigBirdConfig(**SIZES | {"layers": 6}, block=4, random_blocks=1, random="uniform")
    picture = draw(config, 60)
    assert len(titles_of(picture)) == 9
    assert "3 more are not drawn." in words_of(picture)
    assert "(and 3 more that are not drawn)" in picture.text()


def test_the_legend_tells_parts_that_others_cover() -> None:
    words = words_of(draw("bigbird-base", 2048))
    assert "BlockWindow(64)" in words
    assert "counted 4 times" in words
    assert "RandomBlocks(64, 3, 'hf-eval')" in words
    assert "ToGlobal()" not in words_of(draw(LongformerConfig(**SIZES, radius=4), 90, marked=[]))


def test_the_receptive_field_is_shown_layer_by_layer() -> None:
    picture = draw(LongformerConfig(**SIZES, radius=4), 60, marked=[])
    strips = picture.strips(60)
    assert [strip.title for strip in strips] == ["layer 0", "layer 1", "layer 2"]
    assert [int(strip.known.sum()) for strip in strips] == [strip.tokens for strip in strips] == [9, 17, 25]
    assert [int(strip.new.sum()) for strip in strips] == [8, 8, 8]
    assert "25 tokens, 41.7%" in picture.text()
    assert [strip.title for strip in draw("longformer-base", 900).strips(60)] == ["layer 0", "layers 1 to 11"]


def test_patterns_are_drawn_as_layers_with_their_receptive_field() -> None:
    picture = longspan.draw([Window(2)] * 2 + [Window(2) | GlobalTokens()], 40, marked=[3])
    assert titles_of(picture) == ["layers 0 to 1", "layer 2"]
    assert picture.text().splitlines()[0] == (
        "Window(2), Window(2) | GlobalTokens(): "
        "3 layers, 12 heads of size 64; one document of 40 tokens with 1 global token"
    )
    assert picture.receptive_field.tokens.tolist() == [5, 9, 21]
    alone = longspan.draw(Full(), Layout.packed([5, 9]))
    assert alone.facts == "1 layer, 12 heads of size 64; 14 tokens in 2 documents"
    assert "9 tokens, all" in words_of(alone)


def test_what_is_too_long_to_draw_is_refused() -> None:
    with pytest.raises(InputError, match="Draw a shorter document"):
        draw("default", 9000).svg()


def test_notebooks_show_svg_and_terminals_text() -> None:
    picture = longspan.draw("bert-base", 64)
    assert picture._repr_svg_().startswith("<svg")
    assert str(picture) == picture.text()


@pytest.mark.parametrize("name", SHOWN)
def test_the_pictures_of_the_documentation_are_up_to_date(name: str) -> None:
    kept = (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    assert kept == draw(name, SHOWN[name]).svg(), "run `make pictures`"


def test_the_page_shows_every_picture_and_names_every_preset() -> None:
    page = (DOCS / "how-to" / "inspect.md").read_text(encoding="utf-8")
    assert all(f"pictures/{name}.svg" in page for name in SHOWN)
    assert all(f"`{name}`" in page for name in presets())


def test_the_costs_on_the_page_are_what_is_printed() -> None:
    page = (DOCS / "how-to" / "inspect.md").read_text(encoding="utf-8")
    assert str(longspan.explain("longformer-base", 4096, gflops=(120, 100))) in page
    layers = [Window(64), Window(64), Window(64) | GlobalTokens()]
    assert str(longspan.explain(layers, 1024, marked=[0], gflops=100)) in page


def test_the_python_on_the_page_runs() -> None:
    page = (DOCS / "how-to" / "inspect.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, {})
