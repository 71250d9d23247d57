"""Time and memory against length, measured and drawn as one SVG."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from longspan.bench.measure import Missing, Run, measure, spread
from longspan.bench.memory import SERIES, extra, series
from longspan.bench.peers import longformer_projections
from longspan.bench.report import Point
from longspan.patterns.svg import dot, page, text

LENGTHS = tuple(512 * 2**power for power in range(9))  # 512 .. 131,072
PATIENCE = 6.0  # seconds: a series ends where twice the length (four times the work, if full) would take more
LABELS = {
    "full": "full attention (torch SDPA)",
    "transformers": "transformers' chunks",
    "tiled": "longspan tiled",
    "native": "longspan native",
}
COLORS = {"full": 3, "transformers": 1, "tiled": 5, "native": 0}


def curve_points(announce: Callable[[Sequence[int]], Iterator[int]]) -> list[Point]:
    """Measure every series at every length it can bear; transformers' without its projections."""
    points: list[Point] = []
    alive = list(SERIES)
    for n in announce(LENGTHS):
        runs = _runs(alive, n)
        rounds = measure(runs, rounds=3)
        alive = [name for name in SERIES if name in runs]
        for name in list(alive):
            seconds = spread([result[name].seconds for result in rounds]).median
            if seconds * (4 if name == "full" else 2) > PATIENCE:
                alive.remove(name)
            if name == "transformers":
                seconds -= spread([result["projections"].seconds for result in rounds]).median
            points.append(Point(name, n, 1000 * seconds, _memory(name, n)))
    return points


def _runs(names: Sequence[str], n: int) -> dict[str, Run]:
    runs: dict[str, Run] = {}
    for name in names:
        try:
            runs[name] = series(name, n)()
            if name == "transformers":
                runs["projections"] = longformer_projections(n)
        except Missing as reason:
            print(f"{name} is left out: {reason}", file=sys.stderr)
    return runs


def _memory(name: str, n: int) -> float | None:
    try:
        return extra(name, n)
    except Missing:
        return None


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis from `first` to `last`, drawn from pixel `start` to `end`."""

    first: float
    last: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The pixel of a value; one below the axis is drawn on its edge.

        >>> Axis(1, 100, 0, 200).at(10)
        100.0
        """
        share = math.log(max(value, self.first) / self.first) / math.log(self.last / self.first)
        return self.start + share * (self.end - self.start)


def decades(low: float, high: float) -> list[float]:
    """Powers of ten that enclose low..high.

    >>> decades(0.3, 40.0)
    [0.1, 1.0, 10.0, 100.0]
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10.0**power for power in range(first, max(last, first + 1) + 1)]


WIDTH, HEIGHT, TOP, PANEL = 1060, 470, 84, 300


def chart(points: Sequence[Point], note: str) -> str:
    """Two panels side by side: milliseconds and extra megabytes, both axes logarithmic."""
    times = {name: [(p.n, p.milliseconds) for p in points if p.series == name] for name in SERIES}
    floor = 1.0  # a megabyte: less cannot be told from the noise of the allocator
    memory = {
        name: [(p.n, max(p.megabytes, floor)) for p in points if p.series == name and p.megabytes is not None]
        for name in SERIES
    }
    title = "Attention forward, 12 heads × 64, radius 256, one global token, float32"
    body = [
        text(24, 32, title, size=18, bold=True),
        *_panel(72, "milliseconds", times),
        *_panel(600, "extra megabytes at the peak, beyond q, k, v and out", memory),
        *_legend(72, 426),
        text(24, HEIGHT - 14, note, size=11, kind="faint"),
    ]
    return page(title, WIDTH, HEIGHT, body)


def _panel(left: float, title: str, lines: dict[str, list[tuple[int, float]]]) -> Iterator[str]:
    values = [value for line in lines.values() for _, value in line] or [1.0]
    ticks = decades(min(values), max(values))
    x = Axis(LENGTHS[0], LENGTHS[-1], left, left + 420)
    y = Axis(ticks[0], ticks[-1], TOP + PANEL, TOP)
    yield text(left, TOP - 14, title, size=14, bold=True)
    yield f'<rect class="bed" x="{left}" y="{TOP}" width="420" height="{PANEL}"/>'
    for tick in ticks:
        yield _rule(x.start, y.at(tick), x.end, y.at(tick))
        yield text(left - 8, y.at(tick) + 4, f"{tick:,g}", kind="faint", anchor="end")
    for n in LENGTHS[::2]:
        yield _rule(x.at(n), y.start, x.at(n), y.end)
        yield text(x.at(n), y.start + 18, f"{n:,}", kind="faint", anchor="middle")
    for name, line in lines.items():
        yield from _line(name, [(x.at(n), y.at(value)) for n, value in line])


def _legend(left: float, top: float) -> Iterator[str]:
    for index, name in enumerate(SERIES):
        x = left + 245 * index
        yield from _line(name, [(x, top), (x + 13, top), (x + 26, top)], dots=slice(1, 2))
        yield text(x + 34, top + 4, LABELS[name], size=13)


def _line(name: str, points: Sequence[tuple[float, float]], dots: slice = slice(None)) -> Iterator[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    yield f'<polyline class="l{COLORS[name]}" points="{path}" stroke-width="2.5" stroke-linejoin="round"/>'
    yield from (dot(f"p{COLORS[name]}", x, y, 3.5) for x, y in points[dots])


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="grid" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
