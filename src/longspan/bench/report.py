"""What a benchmark says: figures against their bars, as a table and as JSON."""

import json
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from longspan.bench.measure import Spread

SCHEMA = 2
"""2: `dirty` says whether the measured code was that of the commit."""
ROOT = Path(__file__).parents[3]
MEASURED = ("src", "csrc", "CMakeLists.txt", "pyproject.toml", "constraints.txt")
"""What may not have changed since the commit of a run, untracked files included."""


@dataclass(frozen=True)
class Figure:
    """One measured quantity of a case, its bar, or why it could not be measured."""

    case: str
    measure: str
    spread: Spread | None = None
    samples: tuple[float, ...] = ()
    bar: float | None = None
    at_least: bool = True
    skipped: str = ""

    @property
    def verdict(self) -> str:
        """pass, short, skipped, or "-" where no bar is set."""
        if self.spread is None:
            return "skipped"
        if self.bar is None:
            return "-"
        ahead = self.spread.median >= self.bar if self.at_least else self.spread.median <= self.bar
        return "pass" if ahead else "short"


@dataclass(frozen=True)
class Timing:
    """What one run of a case took, and what was measured beside it."""

    case: str
    run: str
    milliseconds: Spread
    sgemm_gflops: float | None
    "Speed of the matrix products around it."
    megabytes: float | None = None
    "Peak growth of its process."


@dataclass(frozen=True)
class Point:
    """One length of one curve of the chart."""

    series: str
    n: int
    milliseconds: float
    megabytes: float | None


@dataclass
class Report:
    """All figures of one benchmark and where they were measured."""

    machine: dict[str, str]
    figures: list[Figure] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    curves: list[Point] = field(default_factory=list)

    def add(self, figures: Sequence[Figure], timings: Sequence[Timing]) -> None:
        """Take in what a case measured."""
        self.figures += figures
        self.timings += timings

    def json(self) -> str:
        """Everything, the samples too."""
        document = {"schema": SCHEMA, "dirty": self.machine.get("commit", "").endswith("+"), **asdict(self)}
        for figure, entry in zip(self.figures, document["figures"], strict=True):
            entry["verdict"] = figure.verdict
        return json.dumps(document, indent=1) + "\n"

    def save(self, path: Path | None) -> None:
        """Write everything, if a path is given; a run of changed code is marked as dirty, and says so."""
        if path:
            path.write_text(self.json())
            if self.machine.get("commit", "").endswith("+"):
                print(f"{path} is marked as dirty: commit the code, then measure it.", file=sys.stderr)

    def table(self) -> str:
        """Header and one line per figure."""
        rows = [["case", "measure", "measured", "bar", "", "quartiles"], *map(_row, self.figures)]
        return f"{header(self.machine)}\n\n{aligned(rows, right=(2, 3))}\n"


def _row(figure: Figure) -> list[str]:
    measured, rest = "", figure.skipped
    if figure.spread is not None:
        measured = number(figure.spread.median)
        rest = f"{number(figure.spread.low)} .. {number(figure.spread.high)}"
    bar = "-" if figure.bar is None else f"{'>=' if figure.at_least else '<='} {number(figure.bar)}"
    return [figure.case, figure.measure, measured, bar, figure.verdict, rest]


def number(value: float) -> str:
    """Three significant digits, without exponents.

    >>> [number(x) for x in (0.7654, 15.27, 1234.5, 0.0)]
    ['0.765', '15.3', '1234', '0.00']
    """
    digits = 2 if value == 0 else max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{digits}f}"


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Rows as columns of equal width, a rule under the first row; the `right` columns flush right.

    >>> print(aligned([["case", "ms"], ["plain", "9.1"]], right=[1]))
    case    ms
    ----------
    plain  9.1
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def header(machine: dict[str, str]) -> str:
    """One line that says where this was measured."""
    return " · ".join(f"{name} {value}" for name, value in machine.items())


def machine(target: str) -> dict[str, str]:
    """What a reader must know to compare figures; `target` is the native kernel's instruction set."""
    return {
        "cpu": _cpu(),
        "threads": str(torch.get_num_threads()),
        "torch": torch.__version__,
        "transformers": _version("transformers"),
        "longspan": _version("longspan"),
        "commit": commit(),
        "target": target,
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    name = re.search(r"^model name\s*: (.*)", info.read_text() if info.exists() else "", re.MULTILINE)
    return name[1] if name else platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def commit(root: Path = ROOT) -> str:
    """The checked-out commit, with a + if what is measured was changed since; "unknown" outside a checkout.

    Runs that were saved into the tree do not count as a change of what is measured."""
    try:
        name = _git(root, "rev-parse", "--short", "HEAD")
        changed = _git(
            root, "status", "--porcelain", "--", *(part for part in MEASURED if (root / part).exists())
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name + "+" * bool(changed)


def _git(root: Path, *arguments: str) -> str:
    if not (root / "pyproject.toml").exists():  # installed, perhaps below someone else's checkout
        raise FileNotFoundError(root)
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()
