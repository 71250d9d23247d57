"""The SVG writer: plain strings in one palette, for light and dark pages; no script, no font, no link."""

import re
from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby

import numpy as np

from longspan.shapes import BoolArray, FloatArray

COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9")
"""Okabe and Ito's, which people with any color vision can tell apart."""
BRIGHT = ("#4ba3dd", "#f0b93a", "#2fc498", "#e29cc2", "#f28a4a", "#8fd0f5")
"""The same for dark pages."""
_LIGHT = {"paper": "#ffffff", "edge": "#c9d0d8", "ink": "#243241", "faint": "#66717e", "bed": "#eef1f4"}
_DARK = {"paper": "#161b22", "edge": "#3d444d", "ink": "#e6edf3", "faint": "#9aa4af", "bed": "#232a33"}
_MONO = ' font-family="ui-monospace,Menlo,Consolas,monospace"'
_LEVELS = 8


def page(title: str, width: float, height: float, body: Iterable[str]) -> str:
    """A whole picture: `body` on a card that follows the light or dark scheme of the page around it.

    Classes are `ink`, `faint` and `paper` for text, `bed` for areas, `rule` and `grid` for lines, and for
    color 0 `p0` to fill, `m0` to fill deeper, `l0` to draw a line; so for the others.
    """
    card = f'<rect class="card" x="0.5" y="0.5" width="{width - 1:g}" height="{height - 1:g}" rx="10"/>'
    content = "\n".join([card, *body])
    light, dark = (_style(content, *palette) for palette in ((_LIGHT, COLORS), (_DARK, BRIGHT)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="system-ui,Helvetica,Arial,sans-serif" role="img">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark} }}\n</style>\n{content}\n</svg>\n"
    )


def text(
    x: float,
    y: float,
    words: str,
    *,
    size: int = 12,
    bold: bool = False,
    kind: str = "ink",
    anchor: str = "start",
    mono: bool = False,
    upward: bool = False,
) -> str:
    """One line of text, on its baseline; `upward` turns it to read from bottom to top."""
    weight = ' font-weight="600"' * bold
    place = f' text-anchor="{anchor}"' * (anchor != "start")
    turn = f' transform="rotate(-90 {x:g} {y:g})"' * upward
    look = f'class="{kind}" font-size="{size}"{weight}{place}{turn}{_MONO * mono}'
    return f'<text x="{x:.5g}" y="{y:g}" {look}>{escape(words)}</text>'


def square(kind: str, x: float, y: float, strength: float = 1.0) -> str:
    """The sample of a color in a legend."""
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="12" height="12" rx="2.5"{_opacity(strength)}/>'


def dot(kind: str, x: float, y: float, radius: float) -> str:
    """A filled circle."""
    return f'<circle class="{kind}" cx="{x:.5g}" cy="{y:.5g}" r="{radius:.2g}"/>'


def shaded(kind: str, shares: FloatArray, *, strength: float = 1.0, gap: float = 0.0) -> Iterator[str]:
    """(rows, columns) of shares as cells one unit wide: the smaller the share, the paler; 0 is left out."""
    level = np.ceil(shares * _LEVELS)
    for step in np.unique(level[level > 0]):
        opacity = _opacity(strength * (0.25 + 0.75 * float(step) / _LEVELS))
        yield f'<path class="{kind}"{opacity} d="{"".join(_moves(level == step, gap))}"/>'


def _moves(cells: BoolArray, gap: float) -> Iterator[str]:
    """Rectangles where cells touch, squares where a gap parts them."""
    top = 0
    for _, run in groupby(cells, key=lambda line: line.tobytes() if not gap else object()):
        lines = list(run)
        edges = np.flatnonzero(np.diff(lines[0], prepend=False, append=False)).tolist()
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            width, height = (1, 1) if gap else (stop - start, len(lines))
            for left in range(start, stop, width):
                yield f"M{left} {top}h{width - gap:g}v{height - gap:g}h{gap - width:g}z"
        top += len(lines)


def _opacity(strength: float) -> str:
    return "" if strength == 1 else f' fill-opacity="{strength:.2g}"'


def _style(content: str, roles: dict[str, str], colors: tuple[str, ...]) -> str:
    """Rules for the classes that `content` has."""
    rules = {name: f"fill: {roles[name]}" for name in ("ink", "faint", "bed", "paper")}
    rules["card"] = f"fill: {roles['paper']}; stroke: {roles['edge']}"
    rules |= {"rule": f"stroke: {roles['ink']}", "grid": f"stroke: {roles['edge']}"}
    for number, color in enumerate(colors):
        rules |= {f"p{number}": f"fill: {color}", f"m{number}": f"fill: {_deep(color, roles['ink'])}"}
        rules[f"l{number}"] = f"stroke: {color}; fill: none"
    used = dict.fromkeys(re.findall(r'class="(\w+)"', content))
    return " ".join(f".{name} {{ {rules[name]} }}" for name in used)


def _deep(color: str, ink: str) -> str:
    """Half way from a color to that of the text: darker on light pages, lighter on dark ones."""
    mixed = ((int(color[i : i + 2], 16) + int(ink[i : i + 2], 16)) // 2 for i in (1, 3, 5))
    return "#" + "".join(f"{part:02x}" for part in mixed)
