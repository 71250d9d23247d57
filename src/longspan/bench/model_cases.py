"""The named cases of whole models: what is measured, against whom, and the bar that has to be reached."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from operator import truediv

from longspan.bench import char_lm, decoder, mlm, modern
from longspan.bench.bars import Bar, at_most, figures, of_peak, of_sgemm, times, timings, whose
from longspan.bench.cases import DOCUMENTS
from longspan.bench.jobs import Job
from longspan.bench.loading import LoadCase
from longspan.bench.measure import Round
from longspan.bench.processes import Job as AnyJob
from longspan.bench.processes import take_turns
from longspan.bench.report import Report

LONG = 65_536
GIGABYTE = 1e9
ON_REQUEST = ("documents-12", "documents-12-kept")
"""Cases that run only when they are named."""
KEPT = " keeping pages"
"""What ends the name of a peer whose allocator gives no page back to the system."""


@dataclass(frozen=True)
class ModelCase:
    """A named set of jobs, each with a process of its own, and the bars computed from their turns."""

    name: str
    jobs: Mapping[str, AnyJob]
    bars: tuple[Bar, ...]

    def measure_into(self, report: Report, rounds: int) -> None:
        """Add a figure per bar and a timing per job; of an interrupted case, from the whole rounds."""
        results: list[Round] = []
        missing: dict[str, str] = {}
        try:
            take_turns(self.jobs, results, missing, rounds)
        finally:
            whole = [turns for turns in results if turns.keys() | missing.keys() == self.jobs.keys()]
            report.figures += figures(self.name, self.bars, whole, missing) if whole or missing else []
            report.timings += timings(self.name, whole)


def model_cases() -> dict[str, ModelCase | LoadCase]:
    """Every case by name, in the order of the table."""
    base = (*_forward(), *_documents(), *_training(), _long(), _poolingformer(), _etc())
    modules = (modern, decoder, char_lm, mlm)
    new = (ModelCase(*case) for module in modules for case in module.cases())
    cases: dict[str, ModelCase | LoadCase] = {
        case.name: case for case in (*base, *_accelerate(), *_led(), *new)
    }
    return cases | {"load": LoadCase("load", 1.5)}


def against_transformers(ours: Job) -> dict[str, Job]:
    """A job of ours and the same by transformers."""
    return {"ours": ours, "transformers": replace(ours, who="transformers")}


def keeping_pages(jobs: Mapping[str, Job]) -> dict[str, Job]:
    """The jobs of transformers once more, each under an allocator that keeps its pages."""
    theirs = {name: job for name, job in jobs.items() if job.who == "transformers"}
    return {name + KEPT: replace(job, keep_pages=True, warm_up=True) for name, job in theirs.items()}


def _twins(name: str, jobs: Mapping[str, Job], *bars: Bar) -> Iterator[ModelCase]:
    """A case, and NAME-kept: ours against transformers keeping pages.

    Not one case, for time's sake, and because transformers' processes would not fit into memory together.
    """
    yield ModelCase(name, jobs, bars)
    kept = keeping_pages(jobs)
    yield ModelCase(f"{name}-kept", {"ours": jobs["ours"]} | kept, tuple(times(peer, None) for peer in kept))


def _forward() -> Iterator[ModelCase]:
    """n 4,096 through the base models."""
    longformer = against_transformers(Job())
    longformer |= keeping_pages(longformer) | {"int8": replace(longformer["ours"], int8=True)}
    share = replace(of_sgemm(0.70), measure="linear layers at sgemm speed, of our time")
    speed = (times("transformers", 3), times("transformers" + KEPT, 2.1), share)
    int8 = (times("transformers", 5.5, run="int8"), times("transformers" + KEPT, None, run="int8"))
    yield ModelCase("longformer", longformer, (*speed, *int8))
    bigbird = against_transformers(Job(family="bigbird"))
    bars = (times("transformers", 3), times("transformers" + KEPT, None), of_peak("transformers", 0.5))
    yield ModelCase("bigbird", bigbird | keeping_pages(bigbird), bars)


def _poolingformer() -> ModelCase:
    """A second level in 3 and in all 12 layers, against a Longformer with the radius of the first level."""
    longformer = Job(radius=128)

    def pooled(layers: int, **fields: bool) -> Job:
        options = {"two_level": tuple(range(layers)), **fields}
        return replace(longformer, family="poolingformer", options=options)

    lite = {"mix": True, "share_weights": True}
    jobs = {"ours": pooled(3), "all layers": pooled(12), "longformer": longformer}
    jobs |= {"lite": pooled(3, **lite), "all layers, lite": pooled(12, **lite)}
    trained = {"training": jobs["ours"], "longformer, training": longformer}
    jobs |= {name: replace(job, training=True, warm_up=False) for name, job in trained.items()}

    def bar(run: str, most: float | None = None, peer: str = "longformer") -> Bar:
        measure = f"{'3 layers' if run == 'ours' else run}, x the time of longformer"
        return at_most(measure, most, peer, truediv, run=run)

    bars = (bar("ours", 1.12), bar("all layers", 1.35), bar("lite"), bar("all layers, lite"))
    return ModelCase("poolingformer", jobs, (*bars, bar("training", peer="longformer, training")))


def _etc() -> ModelCase:
    """ETC-base with 256 global tokens against the same in plain torch, and at 8 times the length.

    Six layers: all cost the same, and plain torch takes its time.
    """
    ours = Job(family="etc", radius=84, layers=6, warm_up=False)
    measure = "n 32768, x time per token of n 4096"
    growth = at_most(measure, 1.2, "ours", lambda long, short: long / 8 / short, run="n 32768")
    jobs = {"ours": ours, "dense masks": replace(ours, who="dense")}
    jobs |= {"dense masks, fused": replace(ours, who="fused"), "n 32768": replace(ours, lengths=(32_768,))}
    bars = (times("dense masks", 5), times("dense masks, fused", None), of_peak("dense masks", None), growth)
    return ModelCase("etc", jobs, bars)


def _documents() -> Iterator[ModelCase]:
    """64 documents: ours packed, theirs padded in batches of 8. All layers cost the same: one tells."""
    for name, layers in (("documents", 1), ("documents-12", 12)):
        ours = Job(lengths=DOCUMENTS, layers=layers, warm_up=False)
        theirs = replace(ours, who="transformers")
        by_length = replace(theirs, lengths=tuple(sorted(DOCUMENTS)))
        peers = {"transformers in given order": theirs, "transformers sorted by length": by_length}
        bars = (times(peer, bar) for peer, bar in zip(peers, (5, 3), strict=True))
        yield from _twins(name, {"ours": ours} | peers, *bars)


def _training() -> Iterator[ModelCase]:
    """Forward and backward, n 4,096."""
    ours = Job(training=True, warm_up=False)
    jobs = against_transformers(ours) | {"checkpointing": replace(ours, checkpointing=True)}
    memory = (of_peak("transformers", 0.5), of_peak("transformers", 0.25, run="checkpointing"))
    speed = times("transformers", None, run="checkpointing")
    yield from _twins("training", jobs, times("transformers", 2.5), *memory, speed)


def _accelerate() -> Iterator[ModelCase]:
    """Models of transformers with our attention inside, against themselves, n 4,096."""
    for family in ("longformer", "bigbird"):
        for training, bar in ((False, 2.0), (True, 1.8)):
            job = Job(who="accelerated", family=family, training=training, warm_up=not training)
            jobs = against_transformers(job)
            bars = [times("transformers", bar), of_peak("transformers", None)]
            if family == "bigbird":  # whose activation transformers composes of eight operations
                jobs["activations"] = replace(job, who="accelerated with activations")
                measure = "activations too, x faster than transformers"
                bars.append(times("transformers", None, run="activations", measure=measure))
            if training:
                yield from _twins(f"accelerate-{family}-training", jobs, *bars)
            else:
                bars.append(times("transformers" + KEPT, None))
                yield ModelCase(f"accelerate-{family}", jobs | keeping_pages(jobs), tuple(bars))


def _led() -> Iterator[ModelCase]:
    """LED-base: 8,192 tokens read; 128 written about them by four beams; 256 learnt."""
    reading = Job(family="led", layers=6, radius=512, positions=16_384, lengths=(8192,))
    longer = {"n 16384": replace(reading, lengths=(16_384,), warm_up=False)}
    memory = _gigabytes(2.5, run="n 16384")
    both = against_transformers(reading)
    speed = (times("transformers", 2.5), times("transformers" + KEPT, None))
    yield ModelCase("led", both | keeping_pages(both) | longer, (*speed, memory))
    summary = against_transformers(replace(reading, written=128, warm_up=False))
    for case in _twins("summarize", summary, times("transformers", 2.3), of_peak("transformers", None)):
        (peer,) = case.jobs.keys() - {"ours"}
        alone = _writing(peer, 2.0 if peer == "transformers" else None)
        yield replace(case, bars=(alone, *case.bars))
    learning = replace(reading, training=True, written=256, warm_up=False)
    bars = (times("transformers", 2.0), of_peak("transformers", 0.5))
    yield from _twins("led-training", against_transformers(learning), *bars)


def _writing(peer: str, bar: float | None) -> Bar:
    """How many times faster ours writes, what it takes to read left out on both sides."""

    def value(r: Round) -> float:
        theirs, ours = (r[who].seconds - r[who].reading for who in (peer, "ours"))
        return theirs / ours

    return Bar(f"writing alone, x faster than {peer}", value, (peer, "ours"), bar)


def _gigabytes(most: float, run: str = "ours") -> Bar:
    return Bar(
        f"{whose(run)}GB above the weights", lambda r: r[run].peak / GIGABYTE, (run,), most, at_least=False
    )


def _long() -> ModelCase:
    """One document of n 65,536, with as many positions."""
    growth = at_most("x time per token of n 4096", 1.2, "n 4096", lambda a, b: a / LONG / (b / 4096))
    long = Job(lengths=(LONG,), positions=LONG, warm_up=False)
    return ModelCase("long", {"ours": long, "n 4096": Job()}, (_gigabytes(3.0), growth))
