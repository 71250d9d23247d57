"""Every figure of the saved runs beside its target, as docs/benchmark-runs.md: python benchmarks/tables.py

A test compares the page with the runs.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from longspan.bench.measure import FEWEST_ROUNDS
from longspan.bench.report import header, number

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmark-runs.md"
INTRODUCTION = """# Saved runs

Every figure of the runs in `benchmarks/baselines/`, beside its target. `python benchmarks/tables.py` writes
this page from them. [Benchmarks](benchmarks.md) says what the cases are and how they are measured.
"""


def faults(run: dict[str, Any]) -> list[str]:
    """Why a run is not one of those that the present rules allow."""
    found = []
    if run["schema"] < 2:
        found.append("before the present rules")
    elif run["dirty"]:
        found.append("of a tree with changes")
    fewest = min((len(f["samples"]) for f in run["figures"] if f["samples"] and not _once(f)), default=0)
    if fewest < FEWEST_ROUNDS:
        found.append(f"some figures of {fewest} rounds" if fewest else "without figures")
    return found


def _once(figure: dict[str, Any]) -> bool:
    """Memory of attention and space do not vary: they are measured once."""
    return "extra MB" in figure["measure"] or figure["case"] == "space"


def page(runs: dict[str, dict[str, Any]]) -> str:
    """The whole page."""
    return INTRODUCTION + "".join(part for name, run in sorted(runs.items()) for part in section(name, run))


def section(name: str, run: dict[str, Any]) -> Iterator[str]:
    """One run."""
    yield f"\n## {name}\n\n{header(run['machine'])}\n\n"
    if wrong := faults(run):
        yield f"**To be measured again**: {', '.join(wrong)}.\n\n"
    yield "| case | measure | measured | target | | quartiles | rounds |\n|---|---|---|---|---|---|---|\n"
    for figure in run["figures"]:
        spread, bar = figure["spread"], figure["bar"]
        target = "" if bar is None else f"{'≥' if figure['at_least'] else '≤'} {number(bar)}"
        measured = number(spread["median"]) if spread else ""
        quartiles = f"{number(spread['low'])} – {number(spread['high'])}" if spread else figure["skipped"]
        verdict = figure["verdict"].replace("-", "")
        cells = (
            figure["case"],
            figure["measure"],
            measured,
            target,
            verdict,
            quartiles,
            len(figure["samples"]),
        )
        yield f"| {' | '.join(map(str, cells))} |\n"


def runs() -> dict[str, dict[str, Any]]:
    """The saved runs by name."""
    return {path.stem: json.loads(path.read_text()) for path in (HERE / "baselines").glob("*.json")}


if __name__ == "__main__":
    PAGE.write_text(page(runs()), encoding="utf-8")
