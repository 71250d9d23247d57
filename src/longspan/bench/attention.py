"""`longspan bench attention`: run the cases and print the table, or draw the chart; save JSON."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from longspan.bench import peers
from longspan.bench.cases import cases
from longspan.bench.measure import Missing, Round, Run, measure, spread, using_threads
from longspan.bench.ours import Work
from longspan.bench.plot import chart, curve_points
from longspan.bench.progress import named, progress
from longspan.bench.report import Report, aligned, header, machine, number
from longspan.errors import whole
from longspan.native import targets

CASE_SECONDS = 25.0  # a slow case stops after this long, once it has three rounds
SHORT_LENGTHS = (512, 4096)


def run(
    *,
    short: bool = False,
    names: Sequence[str] = (),
    rounds: int | None = None,
    threads: int = 2,
    flex: bool = False,
    json: Path | None = None,
    plot: Path | None = None,
) -> None:
    """Print the short table, or draw the chart, or print the named cases (all, if none is named)."""
    with using_threads(whole("threads", threads, 1)):
        where = machine(next(iter(targets()), "none"))
        usual = 5 if short else 9
        count = usual if rounds is None else whole("rounds", rounds, 1)
        if short:
            print(short_table(where, count))
            return
        report, stopped = Report(where), None
        if plot:
            report.curves = curve_points(progress)
            plot.write_text(chart(report.curves, header(where)))
        else:
            try:
                run_cases(report, names, count, flex=flex)
            except KeyboardInterrupt:
                stopped = KeyboardInterrupt("stopped; the table holds what was measured before.")
            print(report.table())
        report.save(json)
        if stopped:
            raise stopped


def run_cases(report: Report, names: Sequence[str], rounds: int, *, flex: bool) -> None:
    """Measure the named cases, or all of them, into the report."""
    known = cases(flex=flex)
    for name in named(names, known):
        report.add(*known[name].measured(rounds, CASE_SECONDS))


def short_table(where: dict[str, str], rounds: int) -> str:
    """Longspan, dense attention and transformers' Longformer at two lengths: time, and ratio to sgemm."""
    rows = [["n", "attention (radius 256, one global token)", "ms", "of sgemm", "slower"]]
    for n in progress(SHORT_LENGTHS):
        rows += short_rows(n, measure(runs := _short_runs(n), paired=runs, rounds=rounds))
    note = "of sgemm: useful FLOP/s over those of a 2,048-cubed matrix product just before and after."
    return f"{header(where)}\n\n{aligned(rows, right=(0, 2, 3, 4))}\n\n{note}"


def _short_runs(n: int) -> dict[str, Run]:
    ours = Work(lengths=(n,), backend="native" if targets() else "tiled")
    runs = {f"longspan {ours.backend}": ours(), "dense (torch SDPA)": peers.sdpa(n)}
    try:
        runs |= {"transformers": peers.longformer(n), "projections": peers.longformer_projections(n)}
    except Missing as reason:
        print(f"left out: {reason}", file=sys.stderr)
    return runs


def short_rows(n: int, results: Sequence[Round]) -> Iterator[list[str]]:
    """One row per attention; transformers' is given without its five projections."""
    ours = next(iter(results[0]))
    useful = results[0][ours].pace * results[0][ours].seconds
    for name in results[0]:
        if name == "projections":
            continue
        less = "projections" if name == "transformers" else ""
        seconds = [r[name].seconds - (r[less].seconds if less else 0.0) for r in results]
        share = spread([useful / s / r[name].sgemm for s, r in zip(seconds, results, strict=True)])
        slower = spread([s / r[ours].seconds for s, r in zip(seconds, results, strict=True)])
        label = "transformers' chunks, less projections" if less else name
        milliseconds = number(1000 * spread(seconds).median)
        yield [str(n), label, milliseconds, number(share.median), f"{number(slower.median)} x"]
