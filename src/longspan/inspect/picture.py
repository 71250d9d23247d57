"""`longspan.draw`: what every layer attends to, and how far tokens come to know of each other."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from textwrap import wrap

import numpy as np

from longspan.families.attention_spec import LayerSpecs
from longspan.families.config import EncoderConfig
from longspan.inspect.field import ReceptiveField, receptive_field
from longspan.inspect.layers import layer_panels
from longspan.inspect.subject import Subject, subject
from longspan.layout import Layout
from longspan.patterns.base import Pattern
from longspan.patterns.draw import panel_lines
from longspan.patterns.figure import CELLS, EDGE, figure, width_of
from longspan.patterns.panel import Panel
from longspan.patterns.svg import page, shaded, square, text
from longspan.shapes import BoolArray, FloatArray
from longspan.words import numbered, plural

WIDTH = width_of(3)
_TEXT_CELLS, _TEXT_STRIP = 40, 60
_SHADES = "·░▒▓█"
_STRIP_CELLS = 300
_STRIP, _ROW, _LABEL, _COUNT = 13, 20, 112, 136  # heights of a strip and its row, room for words beside it
_BEFORE = 0.45  # strength of what was known before


@dataclass(frozen=True)
class Strip:
    """What the token in the middle knows of after some layers, as a line of cells."""

    title: str
    known: FloatArray
    "How much of each cell it knows of, 0 to 1."
    new: FloatArray
    "How much of each cell came with the first of these layers."
    tokens: int


@dataclass(frozen=True)
class Picture:
    """What `draw` returns: prints as text, shows as SVG in notebooks."""

    subject: Subject
    layout: Layout
    calls: LayerSpecs

    @cached_property
    def receptive_field(self) -> ReceptiveField:
        """What the token in the middle can know of after each layer."""
        return receptive_field(self.calls, self.layout, heads=self.subject.config.heads)

    @property
    def facts(self) -> str:
        """The layers and the document in a line."""
        document = self.subject.describe(self.layout, self.receptive_field.second_stream)
        return f"{self.subject.sizes}; {document}"

    @property
    def token(self) -> int:
        """The position of the token in the middle."""
        return int(self.layout.sites.position[self.receptive_field.start[: self.layout.size]][0])

    def panels(self, cells: int) -> tuple[list[Panel], int]:
        """The panels, and how many more there would be."""
        return layer_panels(self.calls, self.layout, heads=self.subject.config.heads, cells=cells)

    def strips(self, cells: int) -> list[Strip]:
        """The receptive field after each layer; layers that add nothing stand together."""
        strips: list[Strip] = []
        before, first = self.receptive_field.start, 0
        for _, run in groupby(self.receptive_field.known, key=lambda known: known.tobytes()):
            known, *same = run
            shares = self._shares(known, cells), self._shares(known & ~before, cells)
            title = numbered("layer", range(first, first + 1 + len(same)))
            strips.append(Strip(title, *shares, int(known[: self.layout.size].sum())))
            before, first = known, first + 1 + len(same)
        return strips

    def _shares(self, nodes: BoolArray, cells: int) -> FloatArray:
        """(nodes,) to the share of each cell of tokens."""
        rows = nodes[: self.layout.size]
        edges = np.linspace(0, rows.size, min(cells, rows.size) + 1).round().astype(int)
        shares: FloatArray = np.add.reduceat(rows.astype(float), edges[:-1]) / np.diff(edges)
        return shares

    def text(self) -> str:
        """The picture for a terminal."""
        return "\n".join(
            [f"{self.subject.name}: {self.facts}", *self._text_panels(), "", *self._text_strips()]
        )

    def svg(self) -> str:
        """The picture as SVG: no script, no font, nothing from elsewhere; for light and dark pages."""
        panels, left_out = self.panels(CELLS)
        title, top = wrap(self.subject.name, 72), EDGE + 15
        heading = [text(EDGE, top + 24 * i, line, size=19, bold=True) for i, line in enumerate(title)]
        top += 24 * len(title) - 2
        heading.append(text(EDGE, top, self.facts, kind="faint"))
        body, bottom = figure(panels, left_out, top=top + 17, width=WIDTH)
        strips, end = self._svg_strips(bottom + 14)
        return page(f"{self.subject.name}: {self.facts}", WIDTH, end + EDGE, [*heading, *body, *strips])

    __str__, _repr_svg_ = text, svg

    def _text_panels(self) -> Iterator[str]:
        panels, left_out = self.panels(_TEXT_CELLS)
        for panel in panels:
            yield f"\n{panel.title}{f': {panel.sources}' * bool(panel.sources)}"
            for part in filter(None, panel.parts):
                yield f"  {f'{part.source}: ' * bool(part.source)}{part.name}"
            yield from panel_lines(panel)
        if left_out:
            yield f"\n(and {left_out} more that are not drawn)"

    def _text_strips(self) -> Iterator[str]:
        yield f"what token {self.token:,} can know of after each layer"
        strips = self.strips(_TEXT_STRIP)
        width = max(len(strip.title) for strip in strips)
        for strip in strips:
            cells = "".join(_SHADES[int(np.ceil(share * (len(_SHADES) - 1)))] for share in strip.known)
            share = strip.tokens / self.receptive_field.reachable
            yield f"{strip.title:<{width}}  {cells}  {plural(strip.tokens, 'token')}, {share:.1%}"

    def _svg_strips(self, top: float) -> tuple[list[str], float]:
        """The receptive field, a line for each layer that adds to it; and where it ends."""
        title = f"What token {self.token:,} can know of after each layer"
        body = [text(EDGE, top + 12, title, size=13, bold=True)]
        for back, strength, words in ((196, 1.0, "new"), (140, _BEFORE, "known before")):
            x = WIDTH - EDGE - back
            body += [square("p0", x, top + 2, strength), text(x + 18, top + 12.5, words, kind="faint")]
        x, y, width = EDGE + _LABEL, top + 28, WIDTH - 2 * EDGE - _LABEL - _COUNT
        for strip in self.strips(_STRIP_CELLS):
            body.append(text(x - 12, y + _STRIP - 2.5, strip.title, anchor="end"))
            body.append(f'<rect class="bed" x="{x:g}" y="{y:g}" width="{width:g}" height="{_STRIP}"/>')
            scale = f"{width / strip.known.size:.6g} {_STRIP}"
            body.append(f'<g transform="translate({x:g} {y:g}) scale({scale})">')
            body += shaded("p0", (strip.known - strip.new)[None], strength=_BEFORE)
            body += [*shaded("p0", strip.new[None]), "</g>"]
            share = f"{strip.tokens / self.receptive_field.reachable:.1%}".replace("100.0%", "all")
            words = f"{strip.tokens:,} tokens, {share}"
            body.append(text(x + width + 12, y + _STRIP - 2.5, words, kind="faint"))
            y += _ROW
        middle = x + width * (int(self.receptive_field.start.argmax()) + 0.5) / self.layout.size
        place = f'x1="{middle:.5g}" x2="{middle:.5g}" y1="{top + 25:g}" y2="{y - 4:g}"'
        body.append(f'<line class="rule" {place} stroke-dasharray="2 2"/>')
        ends = (x, 0, "start"), (middle, self.token, "middle"), (x + width, self.layout.size - 1, "end")
        for along, position, anchor in ends:
            body.append(text(along, y + 9, f"{position:,}", kind="faint", size=11, anchor=anchor))
        return body, y + 12


def draw(
    model: EncoderConfig | Pattern | Sequence[Pattern] | str | Path,
    length: int | Layout | None = None,
    *,
    marked: Iterable[int] | None = None,
    heads: int | None = None,
) -> Picture:
    """What a model or some patterns attend to, layer by layer, with the receptive field.

    `model` is a config, a folder, a name on the hub, or the name of a preset (no weights are
    read); or a pattern, or a sequence of patterns, one for each layer, with `heads` heads. `length` is that
    of one document, or a layout; `marked` are its global tokens, by default those that the family has.

    >>> draw("longformer-base", 4096).facts
    'Longformer, 12 layers of width 768, 12 heads; one document of 4,096 tokens with 1 global token'
    """
    inspected = subject(model, heads)
    layout = inspected.layout(length, marked)
    return Picture(inspected, layout, inspected.config.attention(layout))
