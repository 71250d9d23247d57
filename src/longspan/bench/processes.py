"""Workers taking turns: every run in a process of its own, one computing at a time."""

import math
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.context import SpawnProcess
from typing import Any, Protocol

import torch

from longspan.bench.measure import Missing, Round, Run, Sgemm, Turn, conditions, noting, turn
from longspan.bench.memory import CLEAR, in_use, warm_up
from longspan.bench.progress import step

PATIENCE = 5.0
"""Seconds that a worker has to end by itself."""


class Job(Protocol):
    """What a worker builds from plain data."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What its process needs besides the environment of this one."""
        ...

    @property
    def warm_up(self) -> bool:
        """Whether it runs once before the first turn."""
        ...

    def __call__(self) -> Run:
        """Build it."""
        ...


@contextmanager
def variables(environment: Mapping[str, str]) -> Iterator[None]:
    """Environment variables that processes started in the block are born with."""
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        yield
    finally:
        for name in environment.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def worker(job: Job) -> Iterator["Worker"]:
    """A process that builds the job and ends with the block: by itself, unless that fails."""
    spawn = get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=serve, args=(job, torch.get_num_threads(), theirs), daemon=True)
    with variables(job.environment):
        process.start()
    theirs.close()
    try:
        yield Worker(process, ours)
        ours.close()  # which ends a worker that waits; killed, it would leave the semaphores of its libraries
        process.join(PATIENCE)
    finally:
        process.kill()
        process.join()


@dataclass(frozen=True)
class Worker:
    """The parent's end of such a process."""

    process: SpawnProcess
    pipe: Any

    def wait(self) -> None:
        """Return when the job is built; Missing if it cannot be."""
        self._answer()

    def turn(self) -> Turn:
        """Run the job once."""
        with suppress(OSError):  # it has ended; reading its answer tells why
            self.pipe.send(None)
        taken: Turn = self._answer()
        return taken

    def _answer(self) -> Any:
        try:
            answer = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            status = self.process.exitcode or 0
            name = signal.Signals(-status).name if status < 0 else ""
            ending = f"ended by {name}" if name else f"ended with status {status}"
            raise Missing(ending + ", perhaps for lack of memory" * (name == "SIGKILL")) from None
        if isinstance(answer, Missing):
            raise answer
        return answer


def serve(job: Job, threads: int, pipe: Any) -> None:
    """The child's side: build up, say so, then answer every request with a turn."""
    for stream in (1, 2):  # what libraries print is of no interest
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers itself
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    try:
        run, sgemm = job(), Sgemm()
        warm_up()
        built = in_use("VmRSS") if CLEAR.exists() else 0  # all that grows from here on is the run's
        if job.warm_up:
            with conditions(run):
                run.call()
        pipe.send(None)
        while _is_asked(pipe):
            pipe.send(measured(run, sgemm, built))
    except Exception as error:
        with suppress(OSError):  # nobody waits for it any more
            pipe.send(error if isinstance(error, Missing) else Missing(f"{type(error).__name__}: {error}"))


def _is_asked(pipe: Any) -> bool:
    """Whether there is another request; False when the other end is closed."""
    try:
        pipe.recv()
    except EOFError:
        return False
    return True


def measured(run: Run, sgemm: Sgemm, built: int) -> Turn:
    """One call between two matrix products, and how far the process grew beyond `built` bytes at most."""
    if CLEAR.exists():
        CLEAR.write_text("5")  # the peak starts again from what is in use now
    taken = turn(run, 1, sgemm)
    return replace(taken, peak=in_use("VmHWM") - built if CLEAR.exists() else math.nan)


def take_turns(jobs: Mapping[str, Job], results: list[Round], missing: dict[str, str], rounds: int) -> None:
    """Append rounds to `results`, and to `missing` why a job cannot run."""
    with ExitStack() as stack:
        workers = {name: stack.enter_context(worker(job)) for name, job in jobs.items()}  # built side by side
        for name, process in workers.items():
            step(f"building {name}")
            with noting(missing, name):
                process.wait()
        while len(results) < rounds and len(missing) < len(jobs):
            turns: dict[str, Turn] = {}
            results.append(turns)
            for name, process in workers.items():
                if name not in missing:
                    step(f"round {len(results)} of {rounds}: {name}")
                    with noting(missing, name):
                        turns[name] = process.turn()
