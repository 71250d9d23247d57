"""Compare two saved benchmarks: `python benchmarks/compare.py OLD.json NEW.json`; 1 on a regression."""

import argparse
import json
import sys
from pathlib import Path
from typing import NamedTuple

from longspan.bench.report import aligned, header, number

TOLERANCE = 0.05


class Change(NamedTuple):
    """One figure in both files; `gain` above 1 is better, whichever way the figure counts."""

    case: str
    measure: str
    old: float
    new: float
    gain: float

    @property
    def verdict(self) -> str:
        if self.gain < 1 - TOLERANCE:
            return "WORSE"
        return "better" if self.gain > 1 + TOLERANCE else ""


def changes(old: dict[str, object], new: dict[str, object]) -> list[Change]:
    """Every figure that was measured in both reports, in the order of the new one."""
    before, after = _medians(old), _medians(new)
    return [
        Change(*name, before[name][0], value, _gain(before[name][0], value, at_least))
        for name, (value, at_least) in after.items()
        if name in before
    ]


def _gain(old: float, new: float, at_least: bool) -> float:
    better, worse = (new, old) if at_least else (old, new)
    return better / worse if worse > 0 else 1.0


def _medians(report: dict[str, object]) -> dict[tuple[str, str], tuple[float, bool]]:
    figures = report["figures"]
    assert isinstance(figures, list)
    return {
        (figure["case"], figure["measure"]): (figure["spread"]["median"], figure["at_least"])
        for figure in figures
        if figure["spread"]
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    options = parser.parse_args()
    old, new = (json.loads(path.read_text()) for path in (options.old, options.new))
    found = changes(old, new)
    rows = [["case", "measure", "old", "new", "gain", ""]]
    rows += [[c.case, c.measure, number(c.old), number(c.new), number(c.gain), c.verdict] for c in found]
    print(f"old: {header(old['machine'])}\nnew: {header(new['machine'])}\n\n{aligned(rows, right=(2, 3, 4))}")
    return int(any(change.verdict == "WORSE" for change in found))


if __name__ == "__main__":
    sys.exit(main())
