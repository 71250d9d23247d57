"""The parent of the child process that parses a file: waits within limits and checks the answer."""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from threading import Event, Lock, Timer
from typing import BinaryIO

from longspan.errors import bad, whole
from longspan.text.files.parsed import LIMIT, Heading, Parsed, Refusal
from longspan.text.files.places import Places

CHUNK = 1 << 20
MOST = 1 << 48
DAMAGED = "The file is damaged or harmful."
# With -P, Python imports nothing from the current folder, which may hold anything.
PROGRAM = ("-P", "-m", "longspan.text.files.child")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one file may cost; a file that needs more is refused.

    >>> Limits(bytes=10_000_000).bytes
    10000000
    """

    bytes: int = 256 << 20
    "Size of the file."
    characters: int = 256 << 20
    "Length of its text."
    seconds: float = 8.0
    "Time to parse it; a second more for each megabyte of the file."
    ocr_seconds: float = 900.0
    "Time for recognizing text in its pictures, if that is asked for."
    memory: int = 1 << 30
    "Bytes of address space for the process that parses it."

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not field.name.endswith("seconds"):
                whole(field.name, value, 1, most=MOST)
            elif not isinstance(value, int | float) or not 0 < value < 1e6:
                raise bad(field.name, "a number above 0", value)


class Running:
    """The child processes that are at work for somebody, who may stop them from another thread."""

    def __init__(self) -> None:
        self._ends: set[Callable[[], None]] = set()
        self._lock, self.stopped = Lock(), False

    @contextmanager
    def with_end(self, end: Callable[[], None]) -> Iterator[None]:
        """While inside, to stop calls `end`; if that has happened already, at once."""
        with self._lock:
            self._ends.add(end)
            stopped = self.stopped
        try:
            if stopped:
                end()
            yield
        finally:
            with self._lock:
                self._ends.discard(end)

    def stop(self) -> None:
        """End all of them, and all that would begin."""
        with self._lock:
            self.stopped = True
            for end in self._ends:
                end()


def parse(
    kind: str, file: BinaryIO, size: int, limits: Limits, ocr: str = "", running: Running | None = None
) -> Parsed:
    """Parse an open file of `size` bytes in a child process; `ocr` names languages to recognize, if any."""
    seconds = limits.seconds + size / 1e6 + (limits.ocr_seconds if ocr else 0)
    numbers = (limits.characters, limits.memory, math.ceil(seconds) + 1)
    command = [sys.executable, *PROGRAM, kind, *map(str, numbers), ocr]
    late = Event()
    with subprocess.Popen(
        command,
        stdin=file,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=bool(ocr),  # so that what it starts can be ended with it
    ) as process:

        def end() -> None:
            if ocr and hasattr(os, "killpg") and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()

        def stop() -> None:
            late.set()
            end()

        timer = Timer(seconds, stop)
        timer.start()
        try:
            with (running or Running()).with_end(end):
                answer = _answer(process, 8 * limits.characters + CHUNK)
        finally:
            timer.cancel()
            end()  # after an interrupt; a child that has answered is gone already
    if late.is_set() or process.returncode == -getattr(signal, "SIGXCPU", 0):
        raise Refusal(
            f"reading it took longer than {seconds:.0f} seconds",
            LIMIT.format("--max-parse-seconds", "seconds"),
        )
    return _parsed(answer, process.returncode)


def _answer(process: subprocess.Popen[bytes], most: int) -> bytearray:
    """All that the child writes, up to what an honest child would."""
    assert process.stdout
    answer = bytearray()
    while chunk := process.stdout.read(CHUNK):
        answer += chunk
        if len(answer) > most:
            raise Refusal(f"its parser gave more than {most:,} bytes")
    process.wait()
    return answer


def _parsed(answer: bytearray, status: int) -> Parsed:
    head = answer.find(b"\n")
    if status or head < 0:
        raise Refusal(f"its parser ended with {_named(status)}", DAMAGED)
    try:
        facts = json.loads(answer[:head])
        if "reason" in facts:
            raise Refusal(facts["reason"], facts["repair"])
        text = str(memoryview(answer)[head + 1 :], "utf-8")
        headings = tuple(Heading(*heading) for heading in facts["headings"])
        starts, numbers, units = facts["places"]
        return Parsed(
            text,
            tuple(facts["pages"]),
            facts["title"],
            facts["replaced"],
            headings,
            facts["empty_pages"],
            facts["hidden"],
            Places(tuple(starts), tuple(numbers), tuple((first, unit) for first, unit in units)),
        )
    except (ValueError, KeyError, TypeError):
        raise Refusal("its parser ended without a sensible answer", DAMAGED) from None


def _named(status: int) -> str:
    try:
        return signal.Signals(-status).name if status < 0 else f"status {status}"
    except ValueError:
        return f"signal {-status}"
