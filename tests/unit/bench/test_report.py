import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from longspan.bench.measure import Spread
from longspan.bench.report import Figure, Point, Report, Timing, aligned, commit, machine, number

HALF = Spread(0.5, 0.4, 0.6)


def figure(**changes: Any) -> Figure:
    given: dict[str, Any] = {"case": "forward", "measure": "of sgemm", "spread": HALF, "bar": 0.5} | changes
    return Figure(**given)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "pass"),
        ({"bar": 0.51}, "short"),
        ({"bar": 0.49, "at_least": False}, "short"),
        ({"bar": 0.5, "at_least": False}, "pass"),
        ({"bar": None}, "-"),
        ({"spread": None, "skipped": "no AVX-512"}, "skipped"),
    ],
)
def test_a_figure_is_judged_by_its_median(changes: dict[str, Any], verdict: str) -> None:
    assert figure(**changes).verdict == verdict


def test_the_table_has_one_aligned_line_per_figure() -> None:
    skipped = figure(case="avx2", spread=None, skipped="no AVX-512")
    lines = Report({"cpu": "abacus"}, [figure(), skipped]).table().splitlines()
    assert lines[0] == "cpu abacus"
    assert lines[4].split() == [
        "forward",
        "of",
        "sgemm",
        "0.500",
        ">=",
        "0.500",
        "pass",
        "0.400",
        "..",
        "0.600",
    ]
    assert lines[5].endswith("skipped  no AVX-512")
    assert lines[4].index("of sgemm") == lines[5].index("of sgemm")


def test_the_json_holds_everything() -> None:
    report = Report(
        {"cpu": "abacus"},
        [figure(samples=(0.4, 0.5, 0.6))],
        [Timing("forward", "ours", HALF, None)],
        [Point("native", 512, 1.5, None)],
    )
    document = json.loads(report.json())
    assert document["machine"] == {"cpu": "abacus"}
    assert document["figures"][0]["verdict"] == "pass"
    assert document["figures"][0]["samples"] == [0.4, 0.5, 0.6]
    assert document["timings"][0]["milliseconds"]["median"] == 0.5
    assert document["curves"][0]["n"] == 512


@pytest.mark.parametrize(
    ("value", "text"), [(0.0312, "0.0312"), (0.75, "0.750"), (14.52, "14.5"), (131.4, "131"), (-3.0, "-3.00")]
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert aligned([["a", "n"], ["long", "1"], ["b", "100"]], right=[1]).splitlines() == [
        "a       n",
        "---------",
        "long    1",
        "b     100",
    ]


def test_the_header_names_what_a_reader_must_know() -> None:
    assert machine("avx2").keys() >= {"cpu", "threads", "torch", "commit", "target"}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with a committed source file."""
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    (tmp_path / "src").mkdir()
    for name in ("pyproject.toml", "src/a.py"):
        (tmp_path / name).write_text("")
    who = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True)
    return tmp_path


def test_a_run_of_committed_code_is_clean_whatever_else_lies_about(checkout: Path) -> None:
    (checkout / "benchmarks").mkdir()
    (checkout / "benchmarks" / "new.json").write_text("{}")
    name = commit(checkout)
    assert name.isalnum()
    assert json.loads(Report({"commit": name}).json())["dirty"] is False


@pytest.mark.parametrize("file", ["src/a.py", "src/new.py", "pyproject.toml"])
def test_a_run_of_changed_code_is_marked_as_dirty(
    file: str, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / file).write_text("changed")
    report = Report({"commit": commit(checkout)})
    report.save(checkout / "run.json")
    assert json.loads((checkout / "run.json").read_text())["dirty"] is True
    assert "marked as dirty" in capsys.readouterr().err


def test_outside_of_a_checkout_the_commit_is_unknown(tmp_path: Path) -> None:
    assert commit(tmp_path) == "unknown"
