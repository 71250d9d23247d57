"""What values look like in notebooks: small tables and pictures, with everything escaped."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape

MOST_BARS = 8
_WIDTH, _BAR, _MOST_MARKS = 480, 14, 64
_CELL = ' style="text-align:left;padding:1px 10px"'


def table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """A title and facts by name, as HTML.

    >>> "&lt;b&gt;" in table("Reader", [("task", "<b>")])
    True
    """
    lines = [
        f"<tr><th{_CELL}>{escape(name)}</th><td{_CELL}>{escape(str(value))}</td></tr>" for name, value in rows
    ]
    return f"<div><strong>{escape(title)}</strong><table>{''.join(lines)}</table></div>"


def image(svg: str, words: str) -> str:
    """An SVG picture as an image, so that its styles stay in it; `words` are for those who cannot see it."""
    data = b64encode(svg.encode()).decode()
    return f'<img alt="{escape(words)}" src="data:image/svg+xml;base64,{data}" style="max-width:100%"/>'


def bars(title: str, lengths: Sequence[int], marks: Sequence[Sequence[int]]) -> str:
    """Documents as bars of their lengths, with ticks at some positions of each; of many only the first.

    >>> "and 2 more" in bars("ten", [5] * 10, [[0]] * 10)
    True
    """
    longest, body = max([*lengths, 1]), []
    shown = lengths[:MOST_BARS]
    for number, (length, ticks) in enumerate(zip(shown, marks, strict=False)):
        y, unit = number * (_BAR + 8), _WIDTH / longest
        body.append(_rect(0, y, max(length * unit, 1), "#0072b2"))
        body += [_rect(tick * unit, y, max(unit, 1.5), "#e69f00") for tick in ticks[:_MOST_MARKS]]
        body.append(
            f'<text x="{_WIDTH + 8}" y="{y + 11}" font-size="11" font-family="sans-serif" fill="#66717e">'
            f"{length:,}</text>"
        )
    height = max(len(shown), 1) * (_BAR + 8)
    view = f'viewBox="0 0 {_WIDTH + 80} {height}" width="{_WIDTH + 80}" height="{height}"'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" {view}>{"".join(body)}</svg>'
    left_out = len(lengths) - len(shown)
    rest = f"<div>and {left_out:,} more</div>" if left_out else ""
    return f"<div><strong>{escape(title)}</strong><br/>{image(svg, title)}{rest}</div>"


def _rect(x: float, y: float, width: float, color: str) -> str:
    return f'<rect x="{x:.5g}" y="{y:g}" width="{width:.5g}" height="{_BAR}" fill="{color}"/>'
