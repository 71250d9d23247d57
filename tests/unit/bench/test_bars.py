import math
from collections.abc import Mapping

import pytest

from longspan.bench import bars
from longspan.bench.bars import Case, at_most, of_sgemm, speed_of, times
from longspan.bench.measure import Missing, Round, Run, Turn

ROUND: Round = {
    "ours": Turn(seconds=2.0, pace=60.0, sgemm=80.0),
    "peer": Turn(seconds=25.0, pace=30.0),
    "projections": Turn(seconds=5.0, pace=0.0),
}


def absent() -> Run:
    raise Missing("peer is not installed")


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """Measuring is replaced by two copies of ROUND; the names of the runs asked for are kept."""
    asked: list[set[str]] = []

    def fake(runs: Mapping[str, Run], **_: object) -> list[Round]:
        asked.append(set(runs))
        return [{name: ROUND[name] for name in runs}] * 2

    monkeypatch.setattr(bars, "measure", fake)
    return asked


def test_the_ratio_to_sgemm_is_useful_speed_over_sgemm_speed() -> None:
    bar = of_sgemm(0.75)
    assert bar.value(ROUND) == 0.75
    assert bar.paired


def test_projections_do_not_count_in_a_peers_time() -> None:
    assert times("peer", 15, less="projections").value(ROUND) == 10.0
    assert times("peer", 15).value(ROUND) == 12.5


def test_speed_is_compared_by_amount_per_second() -> None:
    assert speed_of("peer", 0.9).value(ROUND) == 2.0


def test_a_figure_that_may_not_exceed_its_bar_says_so() -> None:
    bar = at_most("x plain time", 2.2, "peer", lambda mine, plain: mine / plain)
    assert bar.value(ROUND) == pytest.approx(0.08)
    assert not bar.at_least


def test_a_missing_peer_skips_its_bar_only(rounds: list[set[str]]) -> None:
    case = Case(
        "forward", {"ours": lambda: Run(lambda: None), "peer": absent}, (of_sgemm(0.75), times("peer", 15))
    )
    first, second = case.measured(rounds=2)[0]
    assert first.verdict == "pass"
    assert first.samples == (0.75, 0.75)
    assert second.verdict == "skipped"
    assert second.skipped == "peer is not installed"
    assert rounds == [{"ours"}]


def test_a_case_without_any_run_is_skipped_without_measuring(rounds: list[set[str]]) -> None:
    figures, timings = Case("forward", {"ours": absent}, (of_sgemm(0.75),)).measured(rounds=2)
    assert [figure.verdict for figure in figures] == ["skipped"]
    assert timings == []
    assert rounds == []


def test_every_run_of_a_case_reports_its_time(rounds: list[set[str]]) -> None:
    made = {name: lambda: Run(lambda: None) for name in ("ours", "peer")}
    ours, peer = Case("forward", made, (of_sgemm(0.75), times("peer", 15))).measured(rounds=2)[1]
    assert ours.milliseconds.median == 2000.0
    assert ours.sgemm_gflops == pytest.approx(80e-9)
    assert peer.sgemm_gflops is None
    assert not math.isnan(peer.milliseconds.median)
