import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from longspan.bench import model, model_cases
from longspan.bench.loading import LoadCase
from longspan.bench.measure import Round, Turn
from longspan.bench.model import run, run_cases, runs_table, short_rows
from longspan.bench.model_cases import ON_REQUEST, ModelCase
from longspan.bench.report import Report
from longspan.cli import main

CASES: list[Any] = [case for case in model_cases.model_cases().values() if isinstance(case, ModelCase)]
ROUND: Round = {
    "ours": Turn(seconds=2.0, pace=60e9, sgemm=80e9, peak=2e9, reading=0.5),
    "transformers": Turn(seconds=7.0, pace=17e9, sgemm=80e9, peak=8e9, reading=1.0),
    "transformers keeping pages": Turn(seconds=4.0, pace=30e9, sgemm=80e9, peak=8e9, reading=1.0),
    "checkpointing": Turn(seconds=3.0, pace=0.0, sgemm=80e9, peak=1e9),
    "n 4096": Turn(seconds=0.1, pace=60e9, sgemm=80e9, peak=1e8),
}


def faked(
    monkeypatch: pytest.MonkeyPatch, *, rounds: int = 1, interrupted: bool = False, absent: str = ""
) -> list[int]:
    """Measuring is replaced by copies of ROUND, perhaps interrupted; the rounds asked for."""
    asked: list[int] = []

    def fake(jobs: dict[str, object], results: list[Round], missing: dict[str, str], count: int) -> None:
        asked.append(count)
        missing.update({name: "not installed" for name in jobs if absent and absent in name})
        named = {name: ROUND.get(name, ROUND["transformers"]) for name in jobs if name not in missing}
        results += [named] * rounds
        if interrupted:
            results.append({"ours": ROUND["ours"]})
            raise KeyboardInterrupt

    monkeypatch.setattr(model_cases, "take_turns", fake)
    monkeypatch.setattr(model, "take_turns", fake)
    return asked


def figures(case: str) -> dict[str, tuple[float, str]]:
    report = Report({})
    run_cases(report, [case], 1)
    return {f.measure: (f.spread.median if f.spread else math.nan, f.verdict) for f in report.figures}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_has_every_job_its_bars_read(case: ModelCase) -> None:
    assert {name for bar in case.bars for name in bar.reads} == set(case.jobs)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_ours_and_its_peers_have_the_same_work(case: Any) -> None:
    for name, job in case.jobs.items():
        if "n " not in name.split(", ")[-1][:2]:
            ours = next(iter(case.jobs.values()))
            assert (sorted(job.lengths), job.layers) == (sorted(ours.lengths), ours.layers)
            if case.name != "poolingformer":  # whose peer is a Longformer
                assert (job.family, job.training) == (ours.family, ours.training)


def test_every_ratio_to_transformers_is_measured_with_both_allocators() -> None:
    default, kept = (
        {
            repr(replace(job, keep_pages=False, warm_up=True))
            for case in CASES
            for job in case.jobs.values()
            if job.who == "transformers" and job.keep_pages is keep
        }
        for keep in (False, True)
    )
    assert default == kept != set()


def test_the_longformer_case_judges_speed_twice_and_the_linear_share(monkeypatch: pytest.MonkeyPatch) -> None:
    faked(monkeypatch)
    assert figures("longformer") == {
        "x faster than transformers": (3.5, "pass"),
        "x faster than transformers keeping pages": (2.0, "short"),
        "linear layers at sgemm speed, of our time": (0.75, "pass"),
        "int8, x faster than transformers": (1.0, "short"),
        "int8, x faster than transformers keeping pages": (pytest.approx(4 / 7), "-"),
    }


def test_the_training_case_judges_memory_with_and_without_checkpointing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    faked(monkeypatch)
    assert figures("training") == {
        "x faster than transformers": (3.5, "pass"),
        "of the peak memory of transformers": (0.25, "pass"),
        "checkpointing, of the peak memory of transformers": (0.125, "pass"),
        "checkpointing, x faster than transformers": (pytest.approx(7 / 3), "-"),
    }


def test_the_long_case_judges_memory_and_time_per_token(monkeypatch: pytest.MonkeyPatch) -> None:
    faked(monkeypatch)
    assert figures("long") == {
        "GB above the weights": (2.0, "pass"),
        "x time per token of n 4096": (1.25, "short"),
    }


@pytest.mark.parametrize("family", ["longformer", "bigbird"])
def test_accelerated_models_are_judged_reading_and_training(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    faked(monkeypatch)
    for case in (f"accelerate-{family}", f"accelerate-{family}-training"):
        found = figures(case)
        assert found["x faster than transformers"] == (3.5, "pass")
        assert found["of the peak memory of transformers"] == (0.25, "-")
        assert ("activations too, x faster than transformers" in found) == (family == "bigbird")


def test_the_etc_case_judges_speed_and_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    faked(monkeypatch)
    assert figures("etc") == {
        "x faster than dense masks": (3.5, "short"),
        "x faster than dense masks, fused": (3.5, "-"),
        "of the peak memory of dense masks": (0.25, "-"),
        "n 32768, x time per token of n 4096": (pytest.approx(7 / 16), "pass"),
    }


def test_writing_is_judged_alone_and_with_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    faked(monkeypatch)
    assert figures("summarize") == {
        "writing alone, x faster than transformers": (4.0, "pass"),
        "x faster than transformers": (3.5, "pass"),
        "of the peak memory of transformers": (0.25, "-"),
    }
    assert figures("summarize-kept") == {
        "writing alone, x faster than transformers keeping pages": (2.0, "-"),
        "x faster than transformers keeping pages": (2.0, "-"),
    }


def test_led_is_judged_reading_and_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    faked(monkeypatch)
    assert figures("led") == {
        "x faster than transformers": (3.5, "pass"),
        "x faster than transformers keeping pages": (2.0, "-"),
        "n 16384, GB above the weights": (8.0, "short"),
    }
    assert figures("led-training") == {
        "x faster than transformers": (3.5, "pass"),
        "of the peak memory of transformers": (0.25, "pass"),
    }


def test_without_transformers_its_bars_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    faked(monkeypatch, absent="transformers")
    verdicts = [verdict for _, verdict in figures("longformer").values()]
    assert verdicts == ["skipped", "skipped", "pass", "skipped", "skipped"]


def test_memory_that_cannot_be_measured_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    faked(monkeypatch)
    monkeypatch.setitem(ROUND, "ours", Turn(2.0, 60e9, 80e9))
    assert figures("bigbird")["of the peak memory of transformers"][1] == "skipped"


def test_slow_cases_run_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoadCase, "measure_into", lambda *_: None)
    asked = faked(monkeypatch)
    run_cases(Report({}), [], 3)
    assert asked == [3] * (len(CASES) - len(ON_REQUEST))


def test_an_interruption_leaves_the_whole_rounds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    faked(monkeypatch, rounds=2, interrupted=True)
    with pytest.raises(KeyboardInterrupt, match="stopped; the table holds what was measured before"):
        run(names=["longformer", "bigbird"], json=tmp_path / "figures.json")
    told = capsys.readouterr()
    assert "x faster than transformers" in told.out
    assert "bigbird" not in told.out
    saved = json.loads((tmp_path / "figures.json").read_text())
    assert saved["figures"][0]["samples"] == [3.5, 3.5]
    assert saved["timings"][0]["megabytes"] == 2000.0


def test_an_interruption_before_the_first_round_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    faked(monkeypatch, rounds=0, interrupted=True)
    report = Report({})
    with pytest.raises(KeyboardInterrupt):
        run_cases(report, ["longformer"], 1)
    assert report.figures == []
    assert report.timings == []


def test_rounds_are_those_asked_for_or_five(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = faked(monkeypatch)
    run(names=["long"], rounds=7)
    run(names=["long"])
    assert asked == [7, 5]
    assert capsys.readouterr().out.count("GB above the weights") == 2


def test_the_second_table_tells_what_every_run_took(monkeypatch: pytest.MonkeyPatch) -> None:
    faked(monkeypatch)
    report = Report({})
    run_cases(report, ["bigbird"], 1)
    ours, theirs, kept = runs_table(report.timings).splitlines()[2:]
    assert ours.split() == ["bigbird", "ours", "2.00", "2000", "80.0"]
    assert theirs.split()[:3] == ["bigbird", "transformers", "7.00"]
    assert kept.split()[:5] == ["bigbird", "transformers", "keeping", "pages", "4.00"]


def test_the_short_table_counts_no_linear_layers_where_texts_are_written() -> None:
    writing = Turn(seconds=2.0, pace=0.0, sgemm=80e9, peak=2e9)
    ((_, _, _, share, *_),) = short_rows("led", [{"ours": writing}])
    assert share == "-"


def test_the_short_table_has_a_row_for_each_side() -> None:
    ours, theirs = short_rows("longformer", [{name: ROUND[name] for name in ("ours", "transformers")}])
    assert ours == ["longformer", "ours", "2.00", "0.750", "2000", "1.00 x"]
    assert theirs == ["longformer", "transformers", "7.00", "0.212", "8000", "3.50 x"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["no-such-case"], "`case` must be one of longformer, bigbird, documents"),
        (["--threads", "0"], "argument --threads: must be a whole number from 1, but is '0'"),
        (["--rounds", "0"], "argument --rounds: must be a whole number from 1, but is '0'"),
        (["--short", "long"], "`--short` must be given without cases and --json"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "model", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert complaint in line
