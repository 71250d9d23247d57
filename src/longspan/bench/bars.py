"""A case: runs that are timed in turn, and the bars that are computed from every round."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from longspan.bench.measure import Round, Run, measure, noting, spread
from longspan.bench.report import Figure, Timing

Maker = Callable[[], Run]
UNMEASURED = "peak memory is read from /proc/self, which this system does not have"


@dataclass(frozen=True)
class Bar:
    """A quantity computed from each round, and what its median has to reach."""

    measure: str
    value: Callable[[Round], float]
    reads: tuple[str, ...]
    """The runs it is computed from."""
    bar: float | None = None
    at_least: bool = True
    paired: bool = False
    """Whether those runs stand between matrix products."""


def of_sgemm(bar: float | None, run: str = "ours") -> Bar:
    """Useful FLOP/s of `run` over those of the matrix products around it."""
    return Bar("of sgemm", lambda r: r[run].pace / r[run].sgemm, (run,), bar, paired=True)


def speed_of(other: str, bar: float, *, run: str = "ours", measure: str = "") -> Bar:
    """Useful FLOPs (or bytes) per second of `run` over those of `other`."""
    return Bar(measure or f"of {other} speed", lambda r: r[run].pace / r[other].pace, (run, other), bar)


def whose(run: str) -> str:
    """What a measure of another run than ours begins with."""
    return "" if run == "ours" else f"{run}, "


def times(peer: str, bar: float | None, *, less: str = "", run: str = "ours", measure: str = "") -> Bar:
    """How many times faster `run` is than `peer` without its share `less`."""

    def value(r: Round) -> float:
        return (r[peer].seconds - (r[less].seconds if less else 0.0)) / r[run].seconds

    reads = tuple(filter(None, (run, peer, less)))
    return Bar(measure or f"{whose(run)}x faster than {peer}", value, reads, bar)


def at_most(
    measure: str, bar: float | None, other: str, value: Callable[[float, float], float], *, run: str = "ours"
) -> Bar:
    """`value` of the seconds of `run` and `other`, which may not exceed the bar."""
    reads = run, other
    return Bar(measure, lambda r: value(*(r[name].seconds for name in reads)), reads, bar, at_least=False)


def seconds(measure: str, bar: float | None = None, *, run: str = "ours", unit: float = 1.0) -> Bar:
    """The time of `run`, in units of so many seconds, which may not exceed the bar."""
    return Bar(measure, lambda r: r[run].seconds / unit, (run,), bar, at_least=False)


def of_peak(other: str, bar: float | None, *, run: str = "ours") -> Bar:
    """Peak memory of `run` over that of `other`, which may not exceed the bar."""
    measure = f"{whose(run)}of the peak memory of {other}"
    return Bar(measure, lambda r: r[run].peak / r[other].peak, (run, other), bar, at_least=False)


@dataclass(frozen=True)
class Case:
    """A named set of runs (made when the case starts, freed when it ends) and its bars."""

    name: str
    runs: Mapping[str, Maker]
    bars: tuple[Bar, ...]

    def measured(self, rounds: int, budget: float = math.inf) -> tuple[list[Figure], list[Timing]]:
        """One figure per bar, and the time of every run; what cannot run here is skipped with its reason."""
        ready: dict[str, Run] = {}
        missing: dict[str, str] = {}
        for name, make in self.runs.items():
            with noting(missing, name):
                ready[name] = make()
        bars = [bar for bar in self.bars if missing.keys().isdisjoint(bar.reads)]
        runs = {name: run for name, run in ready.items() if any(name in bar.reads for bar in bars)}
        paired = {name for bar in bars if bar.paired for name in bar.reads}
        results = measure(runs, paired=paired, rounds=rounds, budget=budget) if runs else []
        return figures(self.name, self.bars, results, missing), timings(self.name, results)


def figures(
    case: str, bars: Sequence[Bar], results: Sequence[Round], missing: Mapping[str, str]
) -> list[Figure]:
    """One figure per bar; one that reads a missing run, or that no round could measure, is skipped."""
    listed = []
    for bar in bars:
        reasons = dict.fromkeys(missing[name] for name in bar.reads if name in missing)
        samples = () if reasons else tuple(bar.value(result) for result in results)
        if any(map(math.isnan, samples)):
            reasons, samples = {UNMEASURED: None}, ()
        middle, why = spread(samples) if samples else None, "; ".join(reasons)
        listed.append(Figure(case, bar.measure, middle, samples, bar.bar, bar.at_least, why))
    return listed


def timings(case: str, results: Sequence[Round]) -> list[Timing]:
    """The time of every run that took part in every round, and what was measured beside it."""
    listed = []
    for name in results[0] if results else ():
        turns = [result[name] for result in results if name in result]
        if len(turns) == len(results):
            took = spread([1000 * turn.seconds for turn in turns])
            gflops, megabytes = [turn.sgemm / 1e9 for turn in turns], [turn.peak / 1e6 for turn in turns]
            listed.append(Timing(case, name, took, _known(gflops), _known(megabytes)))
    return listed


def _known(values: Sequence[float]) -> float | None:
    middle = spread(values).median
    return None if math.isnan(middle) else middle
