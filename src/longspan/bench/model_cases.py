"""The named cases of whole models: what is measured, against whom, and the bar that has to be reached."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from longspan.bench.bars import Bar, at_most, figures, of_peak, of_sgemm, times, timings
from longspan.bench.cases import DOCUMENTS
from longspan.bench.jobs import Job
from longspan.bench.loading import LoadCase
from longspan.bench.measure import Round
from longspan.bench.processes import take_turns
from longspan.bench.report import Report

LONG = 65_536
GIGABYTE = 1e9
ON_REQUEST = ("documents-12",)
"""Cases that run only when they are named."""


@dataclass(frozen=True)
class ModelCase:
    """A named set of jobs, each with a process of its own, and the bars computed from their turns."""

    name: str
    jobs: Mapping[str, Job]
    bars: tuple[Bar, ...]

    def measure_into(self, report: Report, rounds: int, budget: float) -> None:
        """Add a figure per bar and a timing per job; of an interrupted case, from the whole rounds."""
        results: list[Round] = []
        missing: dict[str, str] = {}
        try:
            take_turns(self.jobs, results, missing, rounds, budget)
        finally:
            whole = [turns for turns in results if turns.keys() | missing.keys() == self.jobs.keys()]
            report.figures += figures(self.name, self.bars, whole, missing) if whole or missing else []
            report.timings += timings(self.name, whole)


def model_cases() -> dict[str, ModelCase | LoadCase]:
    """Every case by name, in the order of the table."""
    listed: list[ModelCase | LoadCase] = [*_forward(), *_documents(), _training(), _long()]
    listed.append(LoadCase("load", 1.5))
    return {case.name: case for case in listed}


def against_transformers(ours: Job) -> dict[str, Job]:
    """A job of ours and the same by transformers."""
    return {"ours": ours, "transformers": replace(ours, who="transformers")}


def _forward() -> Iterator[ModelCase]:
    """n 4,096 through the base models."""
    longformer = against_transformers(Job())
    kept = {"transformers keeping pages": replace(longformer["transformers"], keep_pages=True)}
    int8 = {"int8": replace(longformer["ours"], int8=True)}
    share = replace(of_sgemm(0.70), measure="linear layers at sgemm speed, of our time")
    yield ModelCase(
        "longformer",
        longformer | kept | int8,
        (
            times("transformers", 3),
            times("transformers keeping pages", 2.1),
            share,
            times("transformers", 5.5, run="int8", measure="int8, x faster than transformers"),
        ),
    )
    bigbird = against_transformers(Job(family="bigbird"))
    yield ModelCase("bigbird", bigbird, (times("transformers", 3), of_peak("transformers", 0.5)))


def _documents() -> Iterator[ModelCase]:
    """64 documents: ours packed, theirs padded in batches of 8. All layers cost the same: one tells."""
    for name, layers in (("documents", 1), ("documents-12", 12)):
        ours = Job(lengths=DOCUMENTS, layers=layers, warm_up=False)
        given = replace(ours, who="transformers")
        by_length = replace(given, lengths=tuple(sorted(DOCUMENTS)))
        yield ModelCase(
            name,
            {"ours": ours, "transformers in given order": given, "transformers sorted by length": by_length},
            (times("transformers in given order", 5), times("transformers sorted by length", 3)),
        )


def _training() -> ModelCase:
    """Forward and backward, n 4,096."""
    ours = Job(training=True, warm_up=False)
    return ModelCase(
        "training",
        against_transformers(ours) | {"checkpointing": replace(ours, checkpointing=True)},
        (
            times("transformers", 2.5),
            of_peak("transformers", 0.5),
            of_peak("transformers", 0.25, run="checkpointing"),
            times(
                "transformers", None, run="checkpointing", measure="checkpointing, x faster than transformers"
            ),
        ),
    )


def _long() -> ModelCase:
    """One document of n 65,536, with as many positions."""
    growth = at_most("x time per token of n 4096", 1.2, "n 4096", lambda a, b: a / LONG / (b / 4096))
    memory = Bar("GB above the weights", lambda r: r["ours"].peak / GIGABYTE, ("ours",), 3.0, at_least=False)
    long = Job(lengths=(LONG,), positions=LONG, warm_up=False)
    return ModelCase("long", {"ours": long, "n 4096": Job()}, (memory, growth))
