"""Pictures of patterns, as text or SVG: rows are queries, columns are keys."""

from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from longspan.errors import bad
from longspan.html import image
from longspan.layout import Layout
from longspan.patterns.figure import CELLS, EDGE, figure, width_of
from longspan.patterns.panel import MOST_PANELS, Panel, Source, head_groups, panel
from longspan.patterns.svg import page, text

if TYPE_CHECKING:
    from longspan.patterns.base import Pattern

_SHADES = "░▒▓"
_TEXT_CELLS = 64
_LONGEST = 512
"""The most tokens that are drawn unasked."""


def draw(
    pattern: "Pattern",
    queries: Layout | int = 32,
    keys: Layout | int | None = None,
    *,
    heads: Iterable[int] | None = None,
    style: str = "text",
) -> str:
    """A picture of who sees whom, as `text` or `svg`; a number stands for one document of that length.

    `heads` are those to show, by default all that differ.

    >>> from longspan.patterns import Causal, Window
    >>> print(draw(Window(1) & Causal(), 4))
    Window(1) & Causal()
    0  ■ · · ·
    1  ■ ■ · ·
    2  · ■ ■ ·
    3  · · ■ ■
    """
    if style not in ("text", "svg"):
        raise bad("style", "text or svg", style)
    rows = _layout("queries", queries)
    columns = rows if keys is None else _layout("keys", keys)
    groups = head_groups([pattern], range(pattern.heads_declared or 1) if heads is None else heads)
    titled = heads is not None or len(groups) > 1
    panels, cells = [], _TEXT_CELLS if style == "text" else CELLS
    for head, title in groups[:MOST_PANELS]:
        source = Source(pattern, head, rows, columns, np.arange(rows.size))
        panels.append(panel(title if titled else "", [source], rows, columns, cells=cells))
    left_out = len(groups) - len(panels)
    if style == "svg":
        return _svg(repr(pattern), panels, left_out)
    lines = [line for drawn in panels for line in ([drawn.title] if titled else []) + panel_lines(drawn)]
    rest = [f"(and {left_out} more that are not drawn)"] * bool(left_out)
    return "\n".join([repr(pattern), *lines, *rest])


def draw_html(pattern: "Pattern") -> str:
    """The picture for a notebook: one document with a marked token, long enough to show the pattern.

    It is short enough to be there at once, so what only long documents have is not seen.
    """
    size = min(max(4 * max(_numbers(pattern.to_json()), default=0), _TEXT_CELLS), _LONGEST)
    layout = Layout.packed([size], marked=[[0]])
    return image(draw(pattern, layout, style="svg"), repr(pattern))


def _numbers(value: object) -> Iterator[int]:
    """The whole numbers of a pattern's fields."""
    if isinstance(value, int) and not isinstance(value, bool):
        yield value
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _numbers(part)


def panel_lines(panel: Panel) -> list[str]:
    """A panel as text: a digit where a key counts twice or more, shades where a cell holds many pairs."""
    numbers = [str(position) for position in panel.position]
    gutter = max(map(len, numbers), default=0)
    lines = []
    if panel.marked_columns.any():
        lines.append(" " * (gutter + 2) + " ".join("*" if m else " " for m in panel.marked_columns).rstrip())
    for row, number in enumerate(numbers):
        if panel.opens[row]:
            lines.append("")
        mark = "*" if panel.marked_rows[row] else " "
        cells = " ".join(_cell(panel, row, column) for column in range(panel.part.shape[1]))
        lines.append(f"{number:>{gutter}}{mark} {cells}".rstrip())
    return lines


def _layout(name: str, layout: Layout | int) -> Layout:
    if isinstance(layout, int):
        layout = Layout.packed([layout])
    if not isinstance(layout, Layout):
        raise bad(name, "a Layout or the length of one document", layout)
    return layout


def _cell(panel: Panel, row: int, column: int) -> str:
    if not panel.inside[row, column]:
        return " "
    count, share = int(panel.count[row, column]), float(panel.share[row, column])
    if count == 0:
        return "·"
    if count > 1:
        return str(count) if count < 10 else "+"
    if panel.scale == 1:
        return "■"
    return "█" if share == 1 else _SHADES[int(share * len(_SHADES))]


def _svg(title: str, panels: list[Panel], left_out: int) -> str:
    width = width_of(len(panels))
    lines = wrap(title, int((width - 2 * EDGE) / 8.4))
    heading = [text(EDGE, EDGE + 11 + 20 * i, line, size=14, mono=True) for i, line in enumerate(lines)]
    body, bottom = figure(panels, left_out, top=EDGE + 20 * len(lines), width=width, title=title)
    return page(title, width, bottom + EDGE - 12, [*heading, *body])
