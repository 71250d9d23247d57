"""The SVG form of a picture, written as plain strings: no library, no script, readable in any browser."""

from collections.abc import Iterator
from html import escape
from textwrap import wrap

import numpy as np

from longspan.patterns.panel import Axis, Panel
from longspan.shapes import BoolArray

_COLOURS = ("#3f74bb", "#e3953b", "#4fa177", "#a66aab", "#cb5c58", "#5ba9b9")
_INK, _FAINT, _BED, _RULE = "#243241", "#7f8b99", "#f0f2f5", "#c9d0d8"
_SIDE, _GAP, _EDGE, _LINE = 336, 44, 26, 21  # panel side, space between panels, margin, legend line
_LEVELS = 8  # shades for cells that stand for many pairs

Key = tuple[int, int]  # part, count


def svg(title: str, panels: list[Panel]) -> str:
    """All panels side by side under the title, over a legend of the pattern's parts."""
    legend = _legend(panels)
    left, width = _EDGE + 20, 2 * _EDGE + 20 + len(panels) * (_SIDE + _GAP) - _GAP
    lines = wrap(title, width=int((width - 2 * _EDGE) / 8.4))
    top = _EDGE + 26 + 20 * len(lines) + (20 if panels[0].title else 0)
    bottom = top + max(_unit(panel) * panel.part.shape[0] for panel in panels)
    height = bottom + (22 + _LINE * len(legend) - 8 if legend else 0) + _EDGE
    mono = 'font-family="ui-monospace,Menlo,Consolas,monospace"'
    body = [_text(_EDGE, _EDGE + 9 + 20 * i, line, size=14, style=mono) for i, line in enumerate(lines)]
    for number, panel in enumerate(panels):
        body += _panel(panel, left + number * (_SIDE + _GAP), top)
    for line, (key, words) in enumerate(legend):
        y = bottom + 22 + line * _LINE
        body.append(f'<rect x="{left}" y="{y:g}" width="12" height="12" rx="2.5" fill="{_colour(key)}"/>')
        body.append(_text(left + 20, y + 10.5, words))
    frame = f'width="{width - 1:g}" height="{height - 1:g}" rx="10" fill="#ffffff" stroke="{_RULE}"'
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="system-ui,Helvetica,Arial,sans-serif" role="img">'
    )
    heading = f"<title>{escape(title)}</title>"
    return "\n".join([opening, heading, f'<rect x="0.5" y="0.5" {frame}/>', *body, "</svg>", ""])


def _panel(panel: Panel, x: float, y: float) -> Iterator[str]:
    unit = _unit(panel)
    width = panel.part.shape[1]
    if panel.title:
        yield _text(x, y - 27, panel.title, weight=600)
    yield _text(x + width * unit, y - 11, "keys", colour=_FAINT, style='text-anchor="end"')
    turned = f'text-anchor="end" transform="rotate(-90 {x - 12:g} {y:g})"'
    yield _text(x - 12, y, "queries", colour=_FAINT, style=turned)
    yield f'<g transform="translate({x:g} {y:g}) scale({unit:.6g})">'
    gap = 0.1 if unit > 5 else 0.0
    yield path_of(panel.inside, 0.0, f'fill="{_BED}"')
    for key in _keys(panel):
        cells = (panel.part == key[0]) & (panel.count == key[1])
        level = np.ceil(panel.share * _LEVELS)
        for shade in np.unique(level[cells]):
            faint = "" if shade == _LEVELS else f' fill-opacity="{0.2 + 0.8 * shade / _LEVELS:.2g}"'
            yield path_of(cells & (level == shade), gap, f'fill="{_colour(key)}"{faint}')
    yield "</g>"
    yield from _marks(panel.columns, x, y - 5, unit, across=True)
    yield from _marks(panel.rows, x - 5, y, unit, across=False)


def path_of(cells: BoolArray, gap: float, style: str) -> str:
    """All given cells as one path in cell units: runs where they touch, squares where a gap parts them."""
    moves = []
    for row, line in enumerate(cells):
        edges = np.flatnonzero(np.diff(line, prepend=False, append=False))
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            size = 1 if gap else int(stop - start)
            corners = range(int(start), int(stop), size)
            moves += [f"M{c} {row}h{size - gap:g}v{1 - gap:g}h{gap - size:g}z" for c in corners]
    return f'<path d="{"".join(moves)}" {style}/>'


def _marks(axis: Axis, x: float, y: float, unit: float, *, across: bool) -> Iterator[str]:
    """A dot at each marked token."""
    for cell in np.flatnonzero(axis.marked):
        along = (cell + 0.5) * unit
        dx, dy = (along, 0.0) if across else (0.0, along)
        yield f'<circle cx="{x + dx:.5g}" cy="{y + dy:.5g}" r="{min(2.6, unit / 2):.2g}" fill="{_INK}"/>'


def _legend(panels: list[Panel]) -> list[tuple[Key, str]]:
    """One line for each part and count that occurs in any panel; none if there is but one."""
    names: dict[Key, str] = {}
    for panel in panels:
        for key in _keys(panel):
            times = f", counted {key[1]} times" if key[1] > 1 else ""
            names[key] = panel.parts[key[0]] + times
    return sorted(names.items()) if len(names) > 1 else []


def _keys(panel: Panel) -> list[Key]:
    """The (part, count) pairs that occur."""
    seen = panel.part >= 0
    return sorted(set(zip(panel.part[seen].tolist(), panel.count[seen].tolist(), strict=True)))


def _colour(key: Key) -> str:
    """The part's colour, darker where a key counts more than once."""
    base = _COLOURS[key[0] % len(_COLOURS)]
    keep = 1.0 if key[1] < 2 else 0.55
    return "#" + "".join(f"{int(int(base[i : i + 2], 16) * keep):02x}" for i in (1, 3, 5))


def _unit(panel: Panel) -> float:
    """The side of a cell."""
    return _SIDE / max(int(np.max(panel.part.shape)), 1)


def _text(
    x: float, y: float, words: str, *, size: int = 12, weight: int = 400, colour: str = _INK, style: str = ""
) -> str:
    look = f'font-size="{size}" font-weight="{weight}" fill="{colour}" {style}'.rstrip()
    return f'<text x="{x:g}" y="{y:g}" {look}>{escape(words)}</text>'
