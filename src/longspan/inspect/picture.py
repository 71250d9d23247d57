"""`longspan.draw`: a model's attention layer by layer, and how far its tokens come to know of each other."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

import numpy as np

from longspan.engine.explain import plural
from longspan.inspect.field import Field, field
from longspan.inspect.layers import Frame, frames, titled
from longspan.inspect.subject import Subject, subject
from longspan.layout import Layout
from longspan.models.calls import Calls
from longspan.models.config import EncoderConfig
from longspan.patterns.draw import text_of
from longspan.shapes import FloatArray

TEXT_CELLS, SVG_CELLS, STRIP_CELLS = 40, 96, 60
_SHADES = "·░▒▓█"


@dataclass(frozen=True)
class Strip:
    """What the token in the middle knows of after some layers, as a line of cells."""

    title: str
    known: FloatArray
    "How much of each cell it knows of, 0 to 1."
    new: FloatArray
    "How much of it came with the first of these layers."
    tokens: int


@dataclass(frozen=True)
class Picture:
    """What `draw` returns: prints as text, shows as SVG in notebooks."""

    subject: Subject
    layout: Layout
    calls: Calls

    @cached_property
    def field(self) -> Field:
        """How far the token in the middle sees."""
        return field(self.calls, self.layout, heads=self.subject.config.heads)

    @property
    def facts(self) -> str:
        """The model and its document in a line."""
        config, beside = self.subject.config, self.field.start.size - self.layout.size
        sizes = f"{self.subject.family}, {plural(config.layers, 'layer')}, {plural(config.heads, 'head')}"
        return f"{sizes}; {self.subject.told(self.layout, beside)}"

    @property
    def token(self) -> int:
        """The position of the token in the middle."""
        return int(self.layout.sites.position[self.field.start[: self.layout.size]][0])

    def frames(self, cells: int) -> tuple[list[Frame], int]:
        """The panels, and how many more there would be."""
        return frames(self.calls, self.layout, heads=self.subject.config.heads, cells=cells)

    def strips(self, cells: int) -> list[Strip]:
        """The receptive field after each layer; layers that add nothing stand together."""
        found: list[Strip] = []
        before, first = self.field.start, 0
        for _, run in groupby(self.field.known, key=lambda known: known.tobytes()):
            same = list(run)
            last, known = first + len(same) - 1, same[0]
            tokens, new = int(known[: self.layout.size].sum()), known & ~before
            shares = self._cells(known, cells), self._cells(new, cells)
            found.append(Strip(titled(range(first, last + 1)), *shares, tokens))
            before, first = known, last + 1
        return found

    def _cells(self, nodes: Iterable[bool], cells: int) -> FloatArray:
        """(nodes,) to the share of each cell of tokens."""
        rows = np.asarray(nodes)[: self.layout.size]
        edges = np.linspace(0, rows.size, min(cells, rows.size) + 1).round().astype(int)
        shares: FloatArray = np.add.reduceat(rows.astype(float), edges[:-1]) / np.diff(edges)
        return shares

    def text(self) -> str:
        """The picture for a terminal."""
        return "\n".join(
            [f"{self.subject.name}: {self.facts}", *self._panel_lines(), "", *self._strip_lines()]
        )

    def svg(self) -> str:
        """The picture as SVG: no script, no font, nothing from elsewhere; for light and dark pages."""
        from longspan.inspect.svg import svg

        return svg(self)

    def __str__(self) -> str:
        return self.text()

    def _repr_svg_(self) -> str:
        return self.svg()

    def _panel_lines(self) -> Iterator[str]:
        shown, left = self.frames(TEXT_CELLS)
        for frame in shown:
            yield f"\n{frame.title}: {frame.under}"
            yield from (f"  {part.call}: {part.name}" for part in frame.parts if part)
            yield from text_of(frame.panel)
        if left:
            yield f"\n(and {left} more that are not drawn)"

    def _strip_lines(self) -> Iterator[str]:
        yield f"what token {self.token:,} can know of after each layer"
        strips = self.strips(STRIP_CELLS)
        width = max(len(strip.title) for strip in strips)
        for strip in strips:
            line = "".join(_SHADES[int(np.ceil(share * (len(_SHADES) - 1)))] for share in strip.known)
            share = strip.tokens / self.layout.size
            yield f"{strip.title:<{width}}  {line}  {plural(strip.tokens, 'token')}, {share:.1%}"


def draw(
    model: EncoderConfig | str | Path,
    length: int | None = None,
    *,
    marked: Iterable[int] | None = None,
) -> Picture:
    """A model's patterns layer by layer with its receptive field, for one document of `length` tokens.

    `model` is a config, a folder, a name on the hub, or a preset such as "longformer-base"; no weights are
    read. `marked` are the global tokens, by default those that the family usually has.

    >>> print(draw("longformer-base", 4096).text().splitlines()[0])
    longformer-base: Longformer, 12 layers, 12 heads; one document of 4,096 tokens with 1 global token
    """
    looked = subject(model)
    layout = looked.layout(length, marked)
    return Picture(looked, layout, looked.config.calls(layout))
