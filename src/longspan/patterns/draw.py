"""Pictures of patterns, as text or SVG: rows are queries, columns are keys."""

from collections.abc import Iterable

from longspan.errors import bad
from longspan.layout import Layout
from longspan.patterns.base import Pattern
from longspan.patterns.panel import Panel, panels
from longspan.patterns.svg import svg

_SHADES = "░▒▓"
_TEXT_CELLS, _SVG_CELLS = 64, 96


def draw(
    pattern: Pattern,
    queries: Layout | int = 32,
    keys: Layout | int | None = None,
    *,
    heads: Iterable[int] | None = None,
    style: str = "text",
) -> str:
    """The picture; `heads` are those to show (by default all that differ, four at most).

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
    cells = _TEXT_CELLS if style == "text" else _SVG_CELLS
    made = panels(pattern, rows, columns, heads, cells)
    if style == "svg":
        return svg(repr(pattern), made)
    return "\n".join([repr(pattern), *("\n".join(text_of(panel)) for panel in made)])


def _layout(name: str, layout: Layout | int) -> Layout:
    if isinstance(layout, int):
        layout = Layout.packed([layout])
    if not isinstance(layout, Layout):
        raise bad(name, "a Layout or the length of one document", layout)
    return layout


def text_of(panel: Panel) -> list[str]:
    """The panel's lines: a digit where a key counts twice or more, shades where a cell holds many pairs."""
    numbers = [str(position) for position in panel.rows.position]
    gutter = max(map(len, numbers), default=0)
    lines = [panel.title] if panel.title else []
    if panel.columns.marked.any():
        lines.append(" " * (gutter + 2) + " ".join("*" if m else " " for m in panel.columns.marked).rstrip())
    for row, number in enumerate(numbers):
        if panel.rows.opens[row]:
            lines.append("")
        mark = "*" if panel.rows.marked[row] else " "
        cells = " ".join(_cell(panel, row, column) for column in range(panel.part.shape[1]))
        lines.append(f"{number:>{gutter}}{mark} {cells}".rstrip())
    return lines


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
