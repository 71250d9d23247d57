"""One writer at a time: a lock on a file, which the system frees when the process ends, however it ends."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longspan.errors import LongspanError

NAME = "index.lock"
POLL = 0.2


class Busy(LongspanError):
    """Another process is changing the index."""


@contextmanager
def writing(folder: Path, wait: float | None = None) -> Iterator[None]:
    """Hold the lock of an index; wait at most `wait` seconds for it, None: as long as it takes.

    Where the lock cannot be written, nothing else can be: the changes themselves will fail.
    """
    try:
        file = os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError:
        yield
        return
    try:
        deadline = None if wait is None else time.monotonic() + wait
        while not _locked(file):
            if deadline is not None and time.monotonic() >= deadline:
                raise Busy(f"The index `{folder}` is being changed by another process.")
            time.sleep(POLL)
        yield
    finally:
        os.close(file)  # which frees the lock


def _locked(file: int) -> bool:
    """Take the lock if nobody has it."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
