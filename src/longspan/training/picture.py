"""The curve of a run as a picture: loss against tokens, and the evaluations."""

import math
from collections.abc import Sequence

from longspan.patterns.svg import dot, page, text
from longspan.training.log import Record

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 360, 64, 48, 24, 48
POINTS = 300
"""Steps of a long run are averaged to so many points."""


def curve(records: Sequence[Record], metric: str, title: str) -> str:
    """loss.svg: the loss of the steps and, if it is the metric, of the evaluations."""
    steps = [(one["tokens"], one["loss"]) for one in records if _is_number(one.get("loss"))]
    name = f"eval/{metric}"
    marks = [(one["tokens"], one[name]) for one in records if _is_number(one.get(name))]
    drawn = _averaged(steps)
    shown = drawn + (marks if metric == "loss" else [])
    values = [value for _, value in shown] or [0.0, 1.0]
    low, high = min(values), max(values)
    high = high if high > low else low + 1.0
    most = max([tokens for tokens, _ in shown] or [1]) or 1

    def place(point: tuple[float, float]) -> tuple[float, float]:
        share = (point[1] - low) / (high - low)
        return (
            LEFT + point[0] / most * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM),
        )

    body = [text(LEFT, 28, title, size=14, bold=True)]
    for level in range(5):
        value = low + (high - low) * level / 4
        y = place((0, value))[1]
        body.append(f'<path class="grid" d="M{LEFT},{y:.1f}H{WIDTH - RIGHT}"/>')
        body.append(text(LEFT - 8, y + 4, f"{value:.3g}", size=11, kind="faint", anchor="end"))
    for level in range(5):
        x = place((most * level / 4, low))[0]
        anchor = "start" if not level else "end" if level == 4 else "middle"
        body.append(
            text(x, HEIGHT - BOTTOM + 18, _short(most * level / 4), size=11, kind="faint", anchor=anchor)
        )
    body.append(text(WIDTH / 2, HEIGHT - 10, "tokens", size=11, kind="faint", anchor="middle"))
    if drawn:
        path = "L".join("{:.1f},{:.1f}".format(*place(point)) for point in drawn)
        body.append(f'<path class="l0" fill="none" stroke-width="1.6" d="M{path}"/>')
    if metric == "loss":
        body += [dot("p1", *place(point), 3.5) for point in marks]
    legend = "training loss" + (" (line), evaluation (dots)" if metric == "loss" and marks else "")
    body.append(text(WIDTH - RIGHT, 28, legend, size=11, kind="faint", anchor="end"))
    return page(title, WIDTH, HEIGHT, body)


def _averaged(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    size = max(1, math.ceil(len(points) / POINTS))
    groups = [points[begin : begin + size] for begin in range(0, len(points), size)]
    return [(group[-1][0], sum(value for _, value in group) / len(group)) for group in groups]


def _is_number(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _short(number: float) -> str:
    """
    >>> _short(12_500_000)
    '12.5M'
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.0f}"
