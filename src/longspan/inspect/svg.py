"""The SVG form of a model's picture: panels, what their colours mean, and the receptive field below."""

from collections.abc import Iterator
from html import escape
from textwrap import wrap

import numpy as np

from longspan.inspect.layers import Frame, Part
from longspan.inspect.picture import SVG_CELLS, Picture, Strip
from longspan.patterns.panel import Axis
from longspan.patterns.svg import path_of

WIDTH, EDGE, SIDE, ALONE, GAP = 900, 30, 250, 330, 40
LEFT = EDGE + 16
COLUMNS, NARROW = 3, 130
STRIP, ROW, LABEL, COUNT = 13, 20, 112, 136  # a strip and its row, room for words on both sides
CELLS = 300
LEVELS = 8
BEFORE = 0.45
FAINT = f' fill-opacity="{BEFORE}"'
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9")
"""Okabe and Ito's, which people with any colour vision tell apart; a key counted more than once is darker."""
BRIGHT = ("#4ba3dd", "#f0b93a", "#2fc498", "#e29cc2", "#f28a4a", "#8fd0f5")
"""For dark pages."""
_ROLES = {"card": "#ffffff", "edge": "#c9d0d8", "ink": "#243241", "faint": "#66717e", "bed": "#eef1f4"}
_DARK = {"card": "#161b22", "edge": "#3d444d", "ink": "#e6edf3", "faint": "#9aa4af", "bed": "#232a33"}

Colours = dict[tuple[str, str], int]


def svg(picture: Picture) -> str:
    """The whole picture; it follows the page's light or dark scheme."""
    shown, left = picture.frames(SVG_CELLS)
    colours = _colours(shown)
    body = [_text(EDGE, EDGE + 15, picture.subject.name, size=19, weight=600)]
    body.append(_text(EDGE, EDGE + 37, picture.facts, kind="faint"))
    panels, bottom = _panels(shown, colours, EDGE + 62)
    body += panels
    if left:
        body.append(_text(LEFT, bottom + 4, f"{left} more are not drawn.", kind="faint"))
        bottom += 24
    strips, bottom = _strips(picture, bottom + 14)
    body += strips
    height = bottom + EDGE
    title = f"{picture.subject.name}: {picture.facts}"
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" '
        f'height="{height:g}" font-family="system-ui,Helvetica,Arial,sans-serif" role="img">'
    )
    card = f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:g}" rx="10"/>'
    return "\n".join([opening, f"<title>{escape(title)}</title>", _style(), card, *body, "</svg>", ""])


def _style() -> str:
    light, dark = (_rules(*look) for look in ((_ROLES, COLOURS), (_DARK, BRIGHT)))
    return f"<style>\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark} }}\n</style>"


def _rules(roles: dict[str, str], colours: tuple[str, ...]) -> str:
    rules = [f".card {{ fill: {roles['card']}; stroke: {roles['edge']} }}"]
    rules += [f".{name} {{ fill: {roles[name]} }}" for name in ("ink", "faint", "bed")]
    rules += [f".rule {{ stroke: {roles['ink']} }}"]
    rules += [f".p{i} {{ fill: {colour} }}" for i, colour in enumerate(colours)]
    rules += [f".m{i} {{ fill: {_deep(colour, roles['ink'])} }}" for i, colour in enumerate(colours)]
    return " ".join(rules)


def _deep(colour: str, ink: str) -> str:
    """Half way from a colour to that of the text: darker on light pages, lighter on dark ones."""
    mixed = ((int(colour[i : i + 2], 16) + int(ink[i : i + 2], 16)) // 2 for i in (1, 3, 5))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _colours(shown: list[Frame]) -> Colours:
    """A number for each kind of part: windows of one call keep their colour when their radius changes."""
    found: Colours = {}
    for frame in shown:
        for part in filter(None, frame.parts):
            found.setdefault((part.call, part.kind), len(found) % len(COLOURS))
    return found


def _panels(shown: list[Frame], colours: Colours, top: float) -> tuple[list[str], float]:
    """Rows of three, and the legend in what is left of the last one; and where it ends."""
    body: list[str] = []
    side, y, lowest, x = ALONE if len(shown) == 1 else SIDE, top + 48, top, LEFT
    for number, frame in enumerate(shown):
        if number and number % COLUMNS == 0:
            y, x = lowest + 48, LEFT
        unit = _unit(frame, side)
        body += _panel(frame, colours, x, y, unit)
        height, width = frame.panel.part.shape
        lowest = max(lowest, y + height * unit + 32)
        x += max(width * unit, NARROW) + GAP
    if x < WIDTH - EDGE - NARROW:
        legend, end = _legend(shown, colours, x - 12, y, WIDTH - EDGE - x + 12)
    else:
        legend, end = _legend(shown, colours, LEFT, lowest + 6, WIDTH - EDGE - LEFT)
    return body + legend, max(lowest, end)


def _panel(frame: Frame, colours: Colours, x: float, y: float, unit: float) -> Iterator[str]:
    panel = frame.panel
    height, width = panel.part.shape
    yield _text(x, y - 34, frame.title, size=13, weight=600)
    yield _text(x, y - 17, frame.under, kind="faint")
    if width * unit > 120:
        yield _text(x + width * unit, y - 17, "keys", kind="faint", size=11, style='text-anchor="end"')
    turned = f'text-anchor="end" transform="rotate(-90 {x - 8:g} {y:g})"'
    yield _text(x - 8, y, "queries" if height * unit > 44 else "", kind="faint", size=11, style=turned)
    told = f"{frame.useful:.1%} of the pairs"
    yield _text(x, y + height * unit + 16, told, kind="faint", size=11)
    yield f'<g transform="translate({x:g} {y:g}) scale({unit:.6g})">'
    yield path_of(panel.inside, 0.0, 'class="bed"')
    level = np.ceil(panel.share * LEVELS)
    for number, part in enumerate(frame.parts):
        for many in (False, True) if part else ():
            cells = (panel.part == number) & ((panel.count > 1) == many)
            for shade in np.unique(level[cells]):
                faint = "" if shade == LEVELS else f' fill-opacity="{0.25 + 0.75 * shade / LEVELS:.2g}"'
                yield path_of(cells & (level == shade), 0.0, f'class="{_class(colours, part, many)}"{faint}')
    yield "</g>"
    yield from _marks(panel.columns, x, y - 4, unit, across=True)
    yield from _marks(panel.rows, x - 4, y, unit, across=False)


def _class(colours: Colours, part: Part | None, many: bool) -> str:
    assert part is not None
    return f"{'m' if many else 'p'}{colours[part.call, part.kind]}"


def _marks(axis: Axis, x: float, y: float, unit: float, *, across: bool) -> Iterator[str]:
    """A dot at each marked token."""
    for cell in np.flatnonzero(axis.marked):
        along = (cell + 0.5) * unit
        dx, dy = (along, 0.0) if across else (0.0, along)
        radius = min(2.4, max(unit / 2, 1.5))
        yield f'<circle class="ink" cx="{x + dx:.5g}" cy="{y + dy:.5g}" r="{radius:.2g}"/>'


def _legend(shown: list[Frame], colours: Colours, x: float, y: float, room: float) -> tuple[list[str], float]:
    """What each colour means, in the width of `room`; and where it ends."""
    body: list[str] = []
    for kind, name, words in _meanings(shown, colours):
        if kind:
            body.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="12" height="12" rx="2.5"/>')
        mono = 'font-family="ui-monospace,Menlo,Consolas,monospace"'
        for line in wrap(name, int((room - 20) / 7.4)):
            body.append(_text(x + 20, y + 10.5, line, style=mono))
            y += 16
        for line in wrap(words, int((room - 20) / 6.3)):
            body.append(_text(x + 20, y + 10.5, line, kind="faint"))
            y += 16
        y += 9
    return body, y


def _meanings(shown: list[Frame], colours: Colours) -> Iterator[tuple[str, str, str]]:
    """Class, name and a sentence for each colour, and for parts that others cover wholly."""
    parts: dict[tuple[str, str], dict[str, Part]] = {}
    counts: dict[tuple[str, str], set[int]] = {}
    for frame in shown:
        for number, part in enumerate(frame.parts):
            if part is None:
                continue
            parts.setdefault((part.call, part.kind), {})[part.name] = part
            found = np.unique(frame.panel.count[frame.panel.part == number]).tolist()
            counts.setdefault((part.call, part.kind), set()).update(found)
    several = len({call for call, _ in parts}) > 1
    for key, named in parts.items():
        names, times = list(named), max(counts[key], default=0)
        told = ", ".join(names if len(names) < 4 else [*names[:2], "...", names[-1]])
        words = next(iter(named.values())).words if len(names) == 1 else ""
        told = f"{key[0]}: {told}" if several else told
        number = colours[key]
        yield f"p{number}" if min(counts[key], default=2) < 2 else "", told, words
        if times > 1:
            yield f"m{number}", f"counted {times} times", ""


def _strips(picture: Picture, top: float) -> tuple[list[str], float]:
    """The receptive field, a line for each layer that adds to it; and where it ends."""
    words = f"What token {picture.token:,} can know of after each layer"
    body = [_text(EDGE, top + 12, words, size=13, weight=600)]
    for place, faint, word in ((WIDTH - EDGE - 196, "", "new"), (WIDTH - EDGE - 140, FAINT, "known before")):
        body.append(f'<rect class="p0" x="{place}" y="{top + 2:g}" width="12" height="12" rx="2.5"{faint}/>')
        body.append(_text(place + 18, top + 12.5, word, kind="faint"))
    x, y = EDGE + LABEL, top + 28
    width = WIDTH - 2 * EDGE - LABEL - COUNT
    strips = picture.strips(CELLS)
    for strip in strips:
        body.append(_text(x - 12, y + STRIP - 2.5, strip.title, style='text-anchor="end"'))
        body += _strip(strip, x, y, width)
        share = strip.tokens / picture.layout.size
        told = f"{strip.tokens:,} tokens, {share:.1%}".replace("100.0%", "all")
        body.append(_text(x + width + 12, y + STRIP - 2.5, told, kind="faint"))
        y += ROW
    row = int(picture.field.start.argmax())
    middle = x + width * (row + 0.5) / picture.layout.size
    here = f'class="rule" x1="{middle:.5g}" x2="{middle:.5g}" y1="{top + 25:g}" y2="{y - 4:g}"'
    body.append(f'<line {here} stroke-width="1" stroke-dasharray="2 2"/>')
    ends = (x, 0, "start"), (middle, picture.token, "middle"), (x + width, picture.layout.size - 1, "end")
    for along, position, anchor in ends:
        style = f'text-anchor="{anchor}"'
        body.append(_text(along, y + 9, f"{position:,}", kind="faint", size=11, style=style))
    return body, y + 12


def _strip(strip: Strip, x: float, y: float, width: float) -> Iterator[str]:
    """What is new in full colour, over what was known before."""
    yield f'<rect class="bed" x="{x:g}" y="{y:g}" width="{width:g}" height="{STRIP}"/>'
    yield f'<g transform="translate({x:g} {y:g}) scale({width / strip.known.size:.6g} {STRIP})">'
    for shares, strength in ((strip.known - strip.new, BEFORE), (strip.new, 1.0)):
        level = np.ceil(shares[None, :] * LEVELS)
        for shade in np.unique(level[level > 0]):
            opacity = strength * (0.25 + 0.75 * shade / LEVELS)
            faint = "" if opacity == 1 else f' fill-opacity="{opacity:.2g}"'
            yield path_of(level == shade, 0.0, f'class="p0"{faint}')
    yield "</g>"


def _unit(frame: Frame, side: float) -> float:
    """The side of a cell."""
    return side / max(int(np.max(frame.panel.part.shape)), 1)


def _text(
    x: float, y: float, words: str, *, size: int = 12, weight: int = 400, kind: str = "ink", style: str = ""
) -> str:
    look = f'class="{kind}" font-size="{size}" font-weight="{weight}" {style}'.rstrip()
    return f'<text x="{x:g}" y="{y:g}" {look}>{escape(words)}</text>'
