"""`longspan bench model`: run the cases of whole models and print the tables; save JSON."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from longspan.bench.bars import timings
from longspan.bench.jobs import Job
from longspan.bench.measure import FEWEST_ROUNDS, Round, spread, using_threads
from longspan.bench.model_cases import ON_REQUEST, against_transformers, model_cases
from longspan.bench.processes import take_turns
from longspan.bench.progress import named, progress
from longspan.bench.report import Report, Timing, aligned, header, machine, number
from longspan.errors import whole
from longspan.native import targets

SHORT_ROUNDS = 3
SHORT = {
    "longformer, n 2048, 4 layers": Job(layers=4, lengths=(2048,)),
    "led, n 2048, 2 layers, 16 tokens written": Job(
        family="led", layers=2, radius=512, lengths=(2048,), written=16
    ),
}


def run(
    *,
    short: bool = False,
    names: Sequence[str] = (),
    rounds: int | None = None,
    threads: int = 2,
    json: Path | None = None,
) -> None:
    """Print the short table, or the named cases (if none is named, all but those on request)."""
    count = FEWEST_ROUNDS if rounds is None else whole("rounds", rounds, 1)
    with using_threads(whole("threads", threads, 1)):
        report, stopped = Report(machine(next(iter(targets()), "none"))), None
        if short:
            print(short_table(report.machine, SHORT_ROUNDS if rounds is None else count, SHORT))
            return
        try:
            run_cases(report, names, count)
        except KeyboardInterrupt:
            stopped = KeyboardInterrupt("stopped; the table holds what was measured before.")
        print(f"{report.table()}\n{runs_table(report.timings)}")
        report.save(json)
        if stopped:
            raise stopped


def run_cases(report: Report, names: Sequence[str], rounds: int) -> None:
    """Measure the named cases into the report."""
    known = model_cases()
    for name in named(names, known, ON_REQUEST):
        known[name].measure_into(report, rounds)


def runs_table(timings: Sequence[Timing]) -> str:
    """What every run took: seconds, megabytes that its process grew by, GFLOP/s of sgemm beside it."""
    rows = [["case", "run", "seconds", "peak MB", "sgemm GFLOP/s"]]
    rows += [
        [t.case, t.run, number(t.milliseconds.median / 1000), _or_dash(t.megabytes), _or_dash(t.sgemm_gflops)]
        for t in timings
    ]
    return aligned(rows, right=(2, 3, 4))


def _or_dash(value: float | None) -> str:
    return "-" if value is None else number(value)


def short_table(where: dict[str, str], rounds: int, jobs: Mapping[str, Job]) -> str:
    """Small models, Longspan's and transformers': time, share of sgemm, memory and ratio."""
    rows = [["model, one document", "", "seconds", "of sgemm", "peak MB", "slower"]]
    for name in progress(list(jobs)):
        results: list[Round] = []
        missing: dict[str, str] = {}
        take_turns(against_transformers(jobs[name]), results, missing, rounds)
        for who, reason in missing.items():
            print(f"{who} is left out: {reason}", file=sys.stderr)
        rows += short_rows(name, results)
    note = (
        "of sgemm: FLOP/s of the linear layers that are needed over those of matrix products around the run."
    )
    return f"{header(where)}\n\n{aligned(rows, right=(2, 3, 4, 5))}\n\n{note}"


def short_rows(name: str, results: Sequence[Round]) -> Iterator[list[str]]:
    """One row per run."""
    for timing in timings(name, results):
        turns = [(result[timing.run], result["ours"]) for result in results]
        share = spread([turn.pace / turn.sgemm for turn, _ in turns]).median or None
        slower = spread([turn.seconds / ours.seconds for turn, ours in turns])
        seconds = number(timing.milliseconds.median / 1000)
        memory = _or_dash(timing.megabytes)
        yield [name, timing.run, seconds, _or_dash(share), memory, f"{number(slower.median)} x"]
