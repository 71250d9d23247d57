import runpy
from pathlib import Path
from typing import Any

import pytest

compare = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks" / "compare.py"))


def report(value: float | None, *, at_least: bool = True, case: str = "forward") -> dict[str, Any]:
    spread = None if value is None else {"median": value}
    return {"figures": [{"case": case, "measure": "of sgemm", "spread": spread, "at_least": at_least}]}


@pytest.mark.parametrize(
    ("old", "new", "at_least", "verdict"),
    [
        (0.80, 0.75, True, "WORSE"),
        (0.80, 0.77, True, ""),
        (0.75, 0.80, True, "better"),
        (1.00, 1.10, False, "WORSE"),
        (1.10, 1.00, False, "better"),
    ],
)
def test_a_change_above_five_percent_is_flagged(old: float, new: float, at_least: bool, verdict: str) -> None:
    (change,) = compare["changes"](report(old, at_least=at_least), report(new, at_least=at_least))
    assert change.verdict == verdict


def test_a_figure_of_one_report_only_is_left_out() -> None:
    assert compare["changes"](report(None), report(0.8)) == []
    assert compare["changes"](report(0.8, case="other"), report(0.8)) == []
