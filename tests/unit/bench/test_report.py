import json
from typing import Any

import pytest

from longspan.bench.measure import Spread
from longspan.bench.report import Figure, Point, Report, Timing, aligned, machine, number

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
