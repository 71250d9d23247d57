"""Panels as SVG: in rows of three, with a legend of what their colors mean."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

import numpy as np

from longspan.patterns.panel import Panel, Part
from longspan.patterns.svg import COLORS, dot, shaded, square, text

EDGE = 30
"""The margin of a page."""
CELLS = 96
"""Rows and columns of a panel, at most."""
_LEFT = EDGE + 16  # room for a word beside the rows
_SIDE, _ALONE, _GAP, _COLUMNS = 250, 330, 40, 3
_NARROW = 130  # a panel or a legend needs this much

Key = tuple[str, str]
"""The source and kind of a part: what its color stands for."""


def width_of(panels: int) -> int:
    """How wide a page is that has so many panels and nothing beside them."""
    columns, side = min(panels, _COLUMNS), _side(panels)
    return _LEFT + columns * side + (columns - 1) * _GAP + EDGE


def figure(
    panels: Sequence[Panel], left_out: int, *, top: float, width: float, title: str = ""
) -> tuple[list[str], float]:
    """The panels on a page of this width, the legend beside or below them; and where all that ends.

    The legend does not repeat a name that is the page's `title`.
    """
    colors = _colors(panels)
    body: list[str] = []
    head = 30 + 22 * any(panel.title or panel.sources for panel in panels)
    x, y, lowest = float(_LEFT), top + head, top
    for number, panel in enumerate(panels):
        if number and number % _COLUMNS == 0:
            x, y = _LEFT, lowest + head
        height, columns = panel.part.shape
        unit = _side(len(panels)) / max(height, columns, 1)
        body += _panel(panel, colors, x, y, unit)
        lowest = max(lowest, y + height * unit + 32)
        x += max(columns * unit, _NARROW) + _GAP
    room = width - EDGE - x + 12
    if room > _NARROW + 12:
        legend, end = _legend(panels, colors, x - 12, y, room, title)
    else:
        legend, end = _legend(panels, colors, _LEFT, lowest + 4, width - EDGE - _LEFT, title)
    end = max(lowest, end)
    if left_out:
        legend.append(text(_LEFT, end + 4, f"{left_out} more are not drawn.", kind="faint"))
        end += 24
    return body + legend, end


def _side(panels: int) -> int:
    return _ALONE if panels == 1 else _SIDE


def _colors(panels: Sequence[Panel]) -> dict[Key, int]:
    """A number for each kind of part: windows of one source keep their color when their radius changes."""
    colors: dict[Key, int] = {}
    for panel in panels:
        for part in filter(None, panel.parts):
            colors.setdefault((part.source, part.kind), len(colors) % len(COLORS))
    return colors


def _panel(panel: Panel, colors: dict[Key, int], x: float, y: float, unit: float) -> Iterator[str]:
    height, width = panel.part.shape[0] * unit, panel.part.shape[1] * unit
    if panel.title:
        yield text(x, y - 31, panel.title, size=13, bold=True)
    if panel.sources:
        yield text(x, y - 14, panel.sources, kind="faint")
    if width > 120:
        yield text(x + width, y - 14, "keys", kind="faint", size=11, anchor="end")
    if height > 44:
        yield text(x - 8, y, "queries", kind="faint", size=11, anchor="end", upward=True)
    yield text(x, y + height + 16, f"{panel.allowed:.1%} of the pairs", kind="faint", size=11)
    yield f'<g transform="translate({x:g} {y:g}) scale({unit:.6g})">'
    yield from shaded("bed", panel.inside.astype(float))
    for number, part in enumerate(panel.parts):
        if part is None:
            continue
        for letter, repeated in (("p", False), ("m", True)):
            cells = (panel.part == number) & ((panel.count > 1) == repeated)
            kind = f"{letter}{colors[part.source, part.kind]}"
            yield from shaded(kind, panel.share * cells, gap=0.1 if unit > 5 else 0.0)
    yield "</g>"
    radius = min(2.4, max(unit / 2, 1.5))
    for cell in np.flatnonzero(panel.marked_columns):
        yield dot("ink", x + (cell + 0.5) * unit, y - 4, radius)
    for cell in np.flatnonzero(panel.marked_rows):
        yield dot("ink", x - 4, y + (cell + 0.5) * unit, radius)


def _legend(
    panels: Sequence[Panel], colors: dict[Key, int], x: float, y: float, room: float, title: str
) -> tuple[list[str], float]:
    """What each color means, in the width of `room`; and where it ends."""
    body: list[str] = []
    for kind, name, words in _meanings(panels, colors):
        if kind:
            body.append(square(kind, x, y))
        for line in wrap(name, int((room - 20) / 7.4)) if name != title else ():
            body.append(text(x + 20, y + 10.5, line, mono=True))
            y += 16
        for line in wrap(words, int((room - 20) / 6.3)):
            body.append(text(x + 20, y + 10.5, line, kind="faint"))
            y += 16
        y += 9
    return body, y


def _meanings(panels: Sequence[Panel], colors: dict[Key, int]) -> Iterator[tuple[str, str, str]]:
    """Class, name and a sentence for each color, and for parts that others cover wholly."""
    parts: dict[Key, dict[str, Part]] = {}
    counts: dict[Key, set[int]] = {}
    for panel in panels:
        for number, part in enumerate(panel.parts):
            if part is not None:
                key = part.source, part.kind
                parts.setdefault(key, {})[part.name] = part
                counts.setdefault(key, set()).update(panel.count[panel.part == number].tolist())
    several = len({source for source, _ in parts}) > 1
    for key, named in parts.items():
        names = list(named)
        name = ", ".join(names if len(names) < 4 else [*names[:2], "...", names[-1]])
        words = named[names[0]].words if len(names) == 1 else ""
        once, repeated = counts[key] & {1}, sorted(counts[key] - {1})
        yield f"p{colors[key]}" if once else "", f"{key[0]}: {name}" if several else name, words
        if repeated:
            times = " to ".join(str(count) for count in dict.fromkeys((repeated[0], repeated[-1])))
            yield f"m{colors[key]}", f"counted {times} times", ""
