"""Workers taking turns: every run in a process of its own, one computing at a time."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import IO

import torch

from longspan.bench.jobs import Job
from longspan.bench.measure import Missing, Round, Turn
from longspan.bench.progress import step

PROGRAM = ("-m", "longspan.bench.worker")


@contextmanager
def worker(job: Job) -> Iterator["Worker"]:
    """A process that builds the job, ended with the block."""
    command = [sys.executable, *PROGRAM, str(torch.get_num_threads()), job.json()]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | job.environment,
            process_group=0,  # Ctrl-C is for the parent, which ends its workers itself
        ) as process,
    ):
        try:
            yield Worker(process, errors)
        finally:
            process.kill()
            with suppress(BrokenPipeError):  # what a dead worker did not read is of no interest
                assert process.stdin
                process.stdin.close()


@dataclass(frozen=True)
class Worker:
    """The parent's end of such a process."""

    process: subprocess.Popen[str]
    errors: IO[str]

    def wait(self) -> None:
        """Return when the job is built; Missing if it cannot be."""
        self._answer()

    def turn(self) -> Turn:
        """Run the job once."""
        assert self.process.stdin
        with suppress(BrokenPipeError):  # it has ended; reading its answer tells why
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        return Turn(**json.loads(self._answer()))

    def _answer(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise Missing(self._why_it_ended())
        return line

    def _why_it_ended(self) -> str:
        status = self.process.wait()
        if status < 0:
            name = signal.Signals(-status).name
            return f"ended by {name}" + (", perhaps for lack of memory" if name == "SIGKILL" else "")
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        return lines[-1] if lines else f"ended with status {status}"


def take_turns(
    jobs: Mapping[str, Job], results: list[Round], missing: dict[str, str], rounds: int, budget: float
) -> None:
    """Append rounds to `results`, and to `missing` why a job cannot run.

    After the first, no round begins that would probably not end within `budget` seconds."""
    with ExitStack() as stack:
        workers = {name: stack.enter_context(worker(job)) for name, job in jobs.items()}  # built side by side
        for name, process in workers.items():
            step(f"building {name}")
            try:
                process.wait()
            except Missing as reason:
                missing[name] = str(reason)
        started = time.perf_counter()
        while len(results) < rounds and len(missing) < len(jobs):
            turns: dict[str, Turn] = {}
            results.append(turns)
            for name, process in workers.items():
                if name in missing:
                    continue
                step(f"round {len(results)} of {rounds}: {name}")
                try:
                    turns[name] = process.turn()
                except Missing as reason:
                    missing[name] = str(reason)
            if (time.perf_counter() - started) * (1 + 1 / len(results)) > budget:
                break
