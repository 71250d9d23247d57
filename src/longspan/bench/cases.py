"""The named cases: what is measured, against whom, and the bar that has to be reached."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from operator import truediv
from pathlib import Path

from longspan.bench import ours, peers
from longspan.bench.bars import Case, Maker, at_most, of_sgemm, speed_of, times
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


def cases(*, flex: bool = False) -> dict[str, Case | MemoryCase]:
    """Every case by name, in the order of the table; `flex` also compiles FlexAttention (a minute)."""
    listed = (*_longformer(flex), *_patterns(), *_shapes(), *_lengths(), *_machine(), *_overheads())
    return {case.name: case for case in listed}


def _transformers(*, backward: bool = False) -> dict[str, Maker]:
    return {
        "transformers": partial(peers.longformer, 4096, backward=backward),
        "projections": partial(peers.longformer_projections, 4096, backward=backward),
    }


def _longformer(flex: bool) -> Iterator[Case]:
    """n 4,096, radius 256, one global token: the base model's attention."""
    faster = partial(times, "transformers", less="projections")
    compiled = partial(peers.flex, 4096) if flex else _unasked
    yield Case(
        "forward",
        {"ours": PLAIN, **_transformers(), "flex": compiled},
        (of_sgemm(0.75), faster(15), times("flex", 4)),
    )
    yield Case("training", {"ours": TRAINING, **_transformers(backward=True)}, (of_sgemm(0.70), faster(10)))
    yield Case("tiled", {"ours": Work(backend="tiled"), **_transformers()}, (faster(2.5), of_sgemm(None)))


def _unasked() -> Run:
    raise Missing("compiled only with --flex")


def _patterns() -> Iterator[Case]:
    """Other patterns at n 4,096."""
    dilated = longformer(dilation=DILATIONS)
    causal = Window(512) & Causal()
    yield Case("dilation", {"ours": Work(pattern=dilated), "plain": PLAIN}, (speed_of("plain", 0.90),))
    yield Case(
        "dilation-training",
        {"ours": Work(pattern=dilated, backward=True), "plain": TRAINING},
        (speed_of("plain", 0.90),),
    )
    yield Case("causal", {"ours": Work(pattern=causal)}, (of_sgemm(0.70),))
    yield Case("causal-training", {"ours": Work(pattern=causal, backward=True)}, (of_sgemm(0.65),))
    yield Case("radius-64", {"ours": Work(pattern=longformer(64))}, (of_sgemm(0.48),))
    yield Case("radius-64-training", {"ours": Work(pattern=longformer(64), backward=True)}, (of_sgemm(0.43),))
    yield Case(
        "bigbird",
        {
            "ours": Work(pattern=BIGBIRD),
            "transformers": partial(peers.bigbird, 4096),
            "projections": partial(peers.bigbird_projections, 4096),
        },
        (of_sgemm(0.70), times("transformers", 10, less="projections")),
    )
    yield from _relative()


def _relative() -> Iterator[Case]:
    """Relative keys for every distance of the window."""
    for name, backward in (("relative", False), ("relative-training", True)):
        plain = Work(pattern=Window(256), backward=backward)
        slower = at_most("x plain time", 2.2, "plain", truediv)
        yield Case(name, {"ours": replace(plain, relative=256), "plain": plain}, (slower,))


def _shapes() -> Iterator[Case]:
    """Other head sizes and counts."""
    yield Case("head-size-32", {"ours": Work(size=32)}, (of_sgemm(0.62),))
    yield Case("head-size-128", {"ours": Work(size=128)}, (of_sgemm(0.72),))
    yield Case("16-heads", {"ours": Work(heads=16), "12 heads": PLAIN}, (speed_of("12 heads", 0.95),))
    yield Case("packed", {"ours": Work(lengths=DOCUMENTS)}, (of_sgemm(0.68),))
    yield Case(
        "decoding",
        {"ours": ours.decoding, "copy": partial(peers.copying, 2 * 8192 * 12 * 64 * 4)},
        (speed_of("copy", 0.6, measure="of copy bandwidth"),),
    )


def _lengths() -> Iterator[Case | MemoryCase]:
    """Short against dense attention, long against ourselves."""
    for n in SWEEP:
        yield Case(
            f"dense-{n}",
            {"ours": Work(lengths=(n,)), "dense": partial(peers.sdpa, n)},
            (at_most("x dense time", 1.05, "dense", truediv),),
        )
    growth = at_most("x time per token", 1.15, "n 4096", lambda long, short: long / LONG / (short / 4096))
    yield Case("long", {"ours": Work(lengths=(LONG,)), "n 4096": PLAIN}, (growth,))
    yield MemoryCase("long-memory", LONG, 64.0)
    yield MemoryCase("long-memory-training", LONG, 128.0, backward=True)


def _machine() -> Iterator[Case]:
    """Threads and instruction sets."""
    one = Work(threads=1)
    yield Case(
        "one-thread",
        {"ours": one, "two": Work(threads=2)},
        (of_sgemm(0.75), times("ours", 1.75, run="two", measure="x with two threads")),
    )
    yield Case(
        "avx2",
        {"ours": Work(target="avx2"), "avx512": Work(target="avx512")},
        (speed_of("avx512", 0.50),),
    )


def _overheads() -> Iterator[Case]:
    """What is not attention: building the plan, and the way through the public door."""
    share = at_most("of 12 layers", 0.03, "attention", lambda plan, layer: plan / (LAYERS * layer))
    yield Case("plan", {"ours": ours.planning, "attention": PLAIN}, (share,))
    more = at_most("microseconds more", 60, "dense", lambda door, dense: 1e6 * (door - dense))
    yield Case("call", {"ours": Work(lengths=(64,)), "dense": partial(peers.sdpa, 64)}, (more,))
