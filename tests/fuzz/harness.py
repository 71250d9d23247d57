"""A campaign: cases made from a seed, each run in a child process that is watched from outside.

A subject is a module with `make(draw, folder)`, which writes the files of a case, and `run(folder)`, which
uses them: it returns, or raises an error of ours. Whatever else happens is a failure: another exception, the
end of the process, more than SECONDS, more than MEGABYTES. Its files are kept in
build/fuzz/SUBJECT/SEED-NUMBER.
"""

import faulthandler
import os
import random
import resource
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from longspan.errors import LongspanError

SECONDS = 10.0
STARTUP_SECONDS = 300.0
MEGABYTES = 512
ADDRESS_SPACE = 6 << 30
KEPT = Path(__file__).parents[2] / "build" / "fuzz"
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class FuzzError(AssertionError):
    """Cases failed; the message names their folders."""


@dataclass
class Campaign:
    """What became of the cases of a subject."""

    subject: str
    seed: int
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @property
    def cases(self) -> int:
        return self.outcomes.total()

    def __str__(self) -> str:
        told = ", ".join(f"{count:,} {what}" for what, count in self.outcomes.most_common())
        return f"{self.subject}: {self.cases:,} cases (seed {self.seed}): {told}"


@dataclass(frozen=True)
class Child:
    """The parent's end of the process that runs cases."""

    process: SpawnProcess
    pipe: Connection

    def answer(self, seconds: float) -> tuple[str, str]:
        """What it says within so many seconds."""
        if not self.pipe.poll(seconds):
            assert self.process.pid
            os.kill(self.process.pid, signal.SIGUSR1)  # it writes down where it is
            time.sleep(1)
            return "hung", f"no answer within {seconds:.0f} seconds"
        try:
            outcome, words = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            return "crashed", f"the process ended with {self.process.exitcode}"
        return outcome, words


def campaign(subject: str, seconds: float, seed: int, first: int = 0, cases: int = 1 << 40) -> int:
    """Run cases of a subject, numbered from `first` on, for so long; how many. FuzzError if one failed."""
    result = watched(subject, seconds, seed, first, cases)
    if result.failures:
        raise FuzzError("\n".join([str(result), *result.failures]))
    print(result)
    return result.cases


def watched(subject: str, seconds: float, seed: int, first: int = 0, cases: int = 1 << 40) -> Campaign:
    """The same, without raising; a case that ends the child costs a new one."""
    result, number = Campaign(subject.rpartition(".")[2], seed), first
    left = seconds
    while number < first + cases and (left > 0 or number == first):
        with (
            tempfile.TemporaryDirectory(prefix="longspan-fuzz-") as place,
            _child(subject, Path(place)) as child,
        ):
            outcome, words = child.answer(STARTUP_SECONDS)
            if outcome != "ready":
                raise FuzzError(f"{subject} does not start: {outcome}: {words}")
            while number < first + cases and (left > 0 or number == first):
                began = time.monotonic()
                child.pipe.send((seed, number))
                outcome, words = child.answer(SECONDS)
                result.outcomes[outcome] += 1
                if outcome not in ("done", "refused"):
                    result.failures.append(_keep(result, number, outcome, words, Path(place)))
                number += 1
                left -= time.monotonic() - began
                if outcome in ("hung", "crashed"):
                    break
    return result


def _keep(result: Campaign, number: int, outcome: str, words: str, place: Path) -> str:
    folder = KEPT / result.subject / f"{result.seed}-{number}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(place / "case", folder, symlinks=True, dirs_exist_ok=True)
    told = (place / "stderr").read_text(errors="replace")[-20_000:]
    again = f"PYTHONPATH=tests python -m fuzz {result.subject} --seed {result.seed} --case {number}"
    (folder / "WHY").write_text(f"{outcome}\n{words}\n\n{told}\n\n{again}\n")
    (last,) = words.strip().splitlines()[-1:] or [""]
    return f"{folder}: {outcome}: {last}"


@contextmanager
def _child(subject: str, place: Path) -> Iterator[Child]:
    spawn = get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(subject, str(place), theirs), daemon=False)
    process.start()
    theirs.close()
    try:
        yield Child(process, ours)
    finally:
        process.kill()
        process.join()


def _serve(subject: str, place: str, pipe: Connection) -> None:
    """The child's side: answer every (seed, number) with what became of that case."""
    for stream in (1, 2):
        os.dup2(os.open(f"{place}/stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), stream)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    os.chdir(place)
    folder = Path(place, "case")
    module = import_module(subject)
    folder.mkdir()
    module.make(random.Random(0), folder)  # imports and builds what all cases share
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pipe.send(("ready", ""))
    while True:
        seed, number = pipe.recv()
        shutil.rmtree(folder)
        folder.mkdir()
        os.truncate(f"{place}/stderr", 0)
        module.make(random.Random(f"{seed}-{number}"), folder)
        pipe.send(_outcome(module.run, folder))


def _outcome(run: object, folder: Path) -> tuple[str, str]:
    assert callable(run)
    before = _peak(clear=True)
    try:
        run(folder)
        outcome = "done", ""
    except LongspanError as error:
        outcome = "refused", str(error)
    except BaseException:  # also panics of Rust, which are no Exceptions
        return "failed", traceback.format_exc()
    grown = (_peak() - before) >> 20
    return ("grew", f"by {grown} MB") if grown > MEGABYTES else outcome


def _peak(*, clear: bool = False) -> int:
    """Bytes of this process at its peak, from now on if cleared; 0 where the system does not tell."""
    if not CLEAR.exists():
        return 0
    if clear:
        CLEAR.write_text("5")
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])
