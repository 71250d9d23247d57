"""The named cases: what is measured, against whom, and the bar that has to be reached."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from operator import truediv
from pathlib import Path
from typing import Any

from longspan.bench import ours, peers
from longspan.bench.bars import Case, Maker, at_most, of_sgemm, speed_of, times
from longspan.bench.kept import Measured, kept
from longspan.bench.measure import Missing, Run
from longspan.bench.memory import MemoryCase
from longspan.bench.ours import Work, longformer
from longspan.patterns import BlockWindow, Causal, GlobalBlocks, RandomBlocks, Window

DILATIONS = (1, 1, 2, 2, 4, 4, 8, 8, 1, 1, 2, 2)
BIGBIRD = (BlockWindow(64) | GlobalBlocks(64)) + RandomBlocks(64, 3, "hf-train", seed=0)
SWEEP = (256, 300, 384, 512, 700, 768, 1024, 1400, 2048, 3000, 4096, 6000, 8192, 16_384)
LONG = 131_072
LAYERS = 12
DOCUMENTS: tuple[int, ...] = tuple(json.loads(Path(__file__).with_name("lengths-64.json").read_text()))
"""64 lengths drawn once from a log-normal distribution cut to 40..4,000; both ends were put in by hand."""

PLAIN = Work()
TRAINING = Work(backward=True)


@dataclass(frozen=True)
class KeptCase:
    """A case again, in a process whose allocator keeps its pages."""

    name: str
    case: str

    def measured(self, rounds: int, budget: float = math.inf) -> Measured:
        """Those of its figures that compare with transformers."""
        return kept(self.name, again, self.case, rounds, budget)


def again(case: str, rounds: int, budget: float) -> Measured:
    """The child's side of such a case."""
    return cases()[case].measured(rounds, budget)


def cases(*, flex: bool = False) -> dict[str, Case | MemoryCase | KeptCase]:
    """Every case by name, in the order of the table; `flex` also compiles FlexAttention (a minute)."""
    listed = (*_longformer(flex), *_patterns(), *_shapes(), *_lengths(), *_machine(), *_overheads())
    known: dict[str, Case | MemoryCase | KeptCase] = {case.name: case for case in listed}
    peers = [case.name for case in listed if isinstance(case, Case) and "transformers" in case.runs]
    return known | {f"{name}-kept": KeptCase(f"{name}-kept", name) for name in peers}


def _transformers(*, backward: bool = False) -> dict[str, Maker]:
    return {
        "transformers": partial(peers.longformer, 4096, backward=backward),
        "projections": partial(peers.longformer_projections, 4096, backward=backward),
    }


def _longformer(flex: bool) -> Iterator[Case]:
    """n 4,096, radius 256, one global token: the base model's attention."""
    faster = partial(times, "transformers", less="projections")
    compiled = partial(peers.flex, 4096) if flex else _unasked
    bars = (of_sgemm(0.75), faster(15), times("flex", 4))
    yield Case("forward", {"ours": PLAIN, **_transformers(), "flex": compiled}, bars)
    yield Case("training", {"ours": TRAINING, **_transformers(backward=True)}, (of_sgemm(0.70), faster(10)))
    yield Case("tiled", {"ours": Work(backend="tiled"), **_transformers()}, (faster(2.5), of_sgemm(None)))


def _unasked() -> Run:
    raise Missing("compiled only with --flex")


def _patterns() -> Iterator[Case]:
    """Other patterns at n 4,096."""
    dilated = longformer(dilation=DILATIONS)
    causal = Window(512) & Causal()
    for name, plain in (("dilation", PLAIN), ("dilation-training", TRAINING)):
        runs = {"ours": replace(plain, pattern=dilated), "plain": plain}
        yield Case(name, runs, (speed_of("plain", 0.90),))
    yield _alone("causal", 0.70, pattern=causal)
    yield _alone("causal-training", 0.65, pattern=causal, backward=True)
    yield _alone("radius-64", 0.48, pattern=longformer(64))
    yield _alone("radius-64-training", 0.43, pattern=longformer(64), backward=True)
    theirs = {"transformers": partial(peers.bigbird, 4096)}
    theirs["projections"] = partial(peers.bigbird_projections, 4096)
    bars = (of_sgemm(0.70), times("transformers", 10, less="projections"))
    yield Case("bigbird", {"ours": Work(pattern=BIGBIRD), **theirs}, bars)
    slower = at_most("x plain time", 2.2, "plain", truediv)
    for name, backward in (("relative", False), ("relative-training", True)):
        plain = Work(pattern=Window(256), backward=backward)
        yield Case(name, {"ours": replace(plain, relative=256), "plain": plain}, (slower,))


def _alone(name: str, bar: float, **fields: Any) -> Case:
    """An attention of ours against the matrix product only."""
    return Case(name, {"ours": Work(**fields)}, (of_sgemm(bar),))


def _shapes() -> Iterator[Case]:
    """Other head sizes and counts."""
    yield _alone("head-size-32", 0.62, size=32)
    yield _alone("head-size-128", 0.72, size=128)
    yield Case("16-heads", {"ours": Work(heads=16), "12 heads": PLAIN}, (speed_of("12 heads", 0.95),))
    yield _alone("packed", 0.68, lengths=DOCUMENTS)
    copied: dict[str, Maker] = {"ours": ours.decoding, "copy": partial(peers.copying, 2 * 8192 * 12 * 64 * 4)}
    yield Case("decoding", copied, (speed_of("copy", 0.6, measure="of copy bandwidth"),))


def _lengths() -> Iterator[Case | MemoryCase]:
    """Short against dense attention, long against ourselves."""
    slower = at_most("x dense time", 1.05, "dense", truediv)
    for n in SWEEP:
        yield Case(f"dense-{n}", {"ours": Work(lengths=(n,)), "dense": partial(peers.sdpa, n)}, (slower,))
    growth = at_most("x time per token", 1.15, "n 4096", lambda long, short: long / LONG / (short / 4096))
    yield Case("long", {"ours": Work(lengths=(LONG,)), "n 4096": PLAIN}, (growth,))
    yield MemoryCase("long-memory", LONG, 64.0)
    yield MemoryCase("long-memory-training", LONG, 128.0, backward=True)


def _machine() -> Iterator[Case]:
    """Threads and instruction sets."""
    bars = (of_sgemm(0.75), times("ours", 1.75, run="two", measure="x with two threads"))
    yield Case("one-thread", {"ours": Work(threads=1), "two": Work(threads=2)}, bars)
    runs = {"ours": Work(target="avx2"), "avx512": Work(target="avx512")}
    yield Case("avx2", runs, (speed_of("avx512", 0.50),))


def _overheads() -> Iterator[Case]:
    """What is not attention: building the plan, and the way through the public door."""
    share = at_most("of 12 layers", 0.03, "attention", lambda plan, layer: plan / (LAYERS * layer))
    yield Case("plan", {"ours": ours.planning, "attention": PLAIN}, (share,))
    more = at_most("microseconds more", 60, "dense", lambda door, dense: 1e6 * (door - dense))
    yield Case("call", {"ours": Work(lengths=(64,)), "dense": partial(peers.sdpa, 64)}, (more,))
