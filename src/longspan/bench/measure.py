"""Timing in rounds: every run in turn, between two matrix products where a ratio to sgemm is asked for."""

import itertools
import math
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from statistics import median, quantiles

import torch
from torch import Tensor

SGEMM_SIZE = 2048
SGEMM_FLOPS = 2 * SGEMM_SIZE**3
TURN_SECONDS = 0.03  # a shorter call is repeated until its turn lasts this long
FEWEST_ROUNDS = 5
"""A figure of fewer rounds is not published."""


class Missing(Exception):
    """What a run needs is not on this machine; the message says what."""


@dataclass(frozen=True)
class Run:
    """Something to time, and the conditions under which it is called."""

    call: Callable[[], object]
    amount: float = 0.0
    """FLOPs (or bytes) that one call is worth."""
    grad: bool = False
    threads: int | None = None
    """None: as many as the whole benchmark uses."""
    held: int = 0
    """Bytes it keeps besides inputs and results: the plan."""
    within: Callable[[], AbstractContextManager[object]] = nullcontext
    reading: Callable[[], float] | None = None
    """Seconds of the last call that are told apart: in which the document was read, of one that also writes;
    or outside of forward and backward passes."""


@dataclass(frozen=True)
class Turn:
    """One run's share of one round."""

    seconds: float
    pace: float
    """amount per second"""
    sgemm: float = math.nan
    """FLOP/s of the matrix products just before and after (their mean), if they were run."""
    peak: float = math.nan
    """Bytes by which the process grew at most, if that was measured."""
    reading: float = math.nan
    """Seconds that are told apart."""


@contextmanager
def noting(missing: dict[str, str], name: str) -> Iterator[None]:
    """Run the block; where it needs what is not here, the reason is noted under a name."""
    try:
        yield
    except Missing as reason:
        missing[name] = str(reason)


Round = Mapping[str, Turn]
Tensors = tuple[Tensor, ...]


@dataclass(frozen=True)
class Spread:
    """Median and quartiles."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Median and quartiles of one or more values.

    >>> spread([3.0, 1.0, 2.0, 5.0, 4.0])
    Spread(median=3.0, low=2.0, high=4.0)
    """
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return Spread(middle, low, high)


def measure(
    runs: Mapping[str, Run], *, paired: Collection[str] = (), rounds: int = 9, budget: float = math.inf
) -> list[Round]:
    """Time all runs in turn, round after round; the `paired` ones each between two matrix products.

    A slow case stops after `budget` seconds, once it has FEWEST_ROUNDS."""
    sgemm = Sgemm() if paired else None
    repeats = {name: _repeats(run) for name, run in runs.items()}
    results: list[Round] = []
    started = time.perf_counter()
    while len(results) < rounds:
        results.append(
            {name: turn(run, repeats[name], sgemm if name in paired else None) for name, run in runs.items()}
        )
        if len(results) >= FEWEST_ROUNDS and time.perf_counter() - started > budget:
            break
    return results


class Sgemm:
    """A float32 matrix product of 2,048 cubed: the practical ceiling of this machine at this moment."""

    def __init__(self) -> None:
        self.a, self.b, self.out = (torch.ones(SGEMM_SIZE, SGEMM_SIZE) for _ in range(3))
        self.pace()

    def pace(self) -> float:
        """FLOP/s of one product."""
        return SGEMM_FLOPS / _seconds(lambda: torch.mm(self.a, self.b, out=self.out), 1)


def turn(run: Run, repeats: int, sgemm: Sgemm | None) -> Turn:
    """Time some calls, between two matrix products if asked."""
    with conditions(run):
        before = sgemm.pace() if sgemm else math.nan
        seconds = _seconds(run.call, repeats)
        after = sgemm.pace() if sgemm else math.nan
    reading = run.reading() if run.reading else math.nan
    return Turn(seconds, run.amount / seconds, (before + after) / 2, reading=reading)


@contextmanager
def using_threads(count: int) -> Iterator[None]:
    """Run the block with `count` torch threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def conditions(run: Run) -> Iterator[None]:
    """Threads, gradients and whatever else `run` asks for."""
    threads = run.threads or torch.get_num_threads()
    with using_threads(threads), torch.set_grad_enabled(run.grad), run.within():
        yield


def fused(rows: int, parts: int, heads: int = 12, size: int = 64, *, grad: bool = False) -> Tensors:
    """Random (N, H, D) views of one fused projection, as models have them."""
    whole = torch.randn(rows, parts, heads, size, generator=torch.Generator().manual_seed(0))
    views = whole.unbind(1)  # (N, parts, H, D) -> (N, H, D)
    return tuple(part.detach().requires_grad_(grad) for part in views)


def with_gradients(
    forward: Callable[[], Tensors], inputs: Tensors, upstream: Tensors
) -> Callable[[], Tensors]:
    """A call that runs `forward` and its backward pass, and returns outputs and gradients of `inputs`."""

    def both() -> Tensors:
        out = forward()
        return *out, *torch.autograd.grad(out, inputs, upstream)

    return both


def printed(*arguments: str) -> str:
    """What a fresh Python prints; Missing, with its last words, if it fails."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise Missing(done.stderr.strip().splitlines()[-1])
    return done.stdout


def _seconds(call: Callable[[], object], repeats: int) -> float:
    """The median of some calls."""
    ticks = [time.perf_counter()]
    for _ in range(repeats):
        call()
        ticks.append(time.perf_counter())
    return median(end - start for start, end in itertools.pairwise(ticks))


def _repeats(run: Run) -> int:
    """Warm up, and find how often to call per turn."""
    with conditions(run):
        run.call()
        return max(1, math.ceil(TURN_SECONDS / _seconds(run.call, 1)))
