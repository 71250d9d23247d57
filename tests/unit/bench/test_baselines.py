"""Saved runs are clean, have as many rounds as the docs say, and stand in the docs beside their targets."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
tables = runpy.run_path(str(ROOT / "benchmarks" / "tables.py"))
RUNS: dict[str, dict[str, Any]] = tables["runs"]()
OLD = {
    *("amd-epyc-zen3-families", "amd-epyc-zen3-forward", "amd-epyc-zen3-model"),
    *("amd-epyc-zen3-search", "amd-epyc-zen4-search"),
}
"""Runs from before the rule; each leaves this list when it is measured again, and none is added."""


@pytest.mark.parametrize("name", RUNS)
def test_a_run_is_of_committed_code_and_of_five_rounds(name: str) -> None:
    assert bool(tables["faults"](RUNS[name])) == (name in OLD)


def test_the_page_shows_every_figure_beside_its_target() -> None:
    page = (ROOT / "docs" / "benchmark-runs.md").read_text(encoding="utf-8")
    assert page == tables["page"](RUNS), "write it again: python benchmarks/tables.py"


def test_every_run_is_named_by_the_page_on_benchmarks() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert not [name for name in RUNS if f"baselines/{name}.json" not in page]


def figure(rounds: int, measure: str = "of sgemm") -> dict[str, Any]:
    return {"case": "forward", "measure": measure, "samples": [1.0] * rounds}


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ({"schema": 2, "dirty": False, "figures": [figure(5), figure(1, "extra MB"), figure(0)]}, []),
        ({"schema": 2, "dirty": True, "figures": [figure(5)]}, ["of a tree with changes"]),
        ({"schema": 2, "dirty": False, "figures": [figure(5), figure(4)]}, ["some figures of 4 rounds"]),
        ({"schema": 2, "dirty": False, "figures": []}, ["without figures"]),
        ({"schema": 1, "figures": [figure(5)]}, ["before the present rules"]),
    ],
    ids=json.dumps,
)
def test_what_is_wrong_with_a_run_is_told(run: dict[str, Any], words: list[str]) -> None:
    assert tables["faults"](run) == words
