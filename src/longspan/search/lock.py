"""One writer at a time: a lock on a file, which the system frees when the process ends, however it ends."""

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longspan.errors import LongspanError

NAME = "index.lock"
POLL = 0.2
DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors of a folder that may not be written."""


class Unwritable(LongspanError):
    """The index cannot be changed now, but it can be searched."""


class Busy(Unwritable):
    """Another process is changing the index."""


class ReadOnly(Unwritable):
    """The index may not be written."""


@contextmanager
def writing(folder: Path, wait: float | None = None) -> Iterator[bool]:
    """Hold the lock of an index; wait at most `wait` seconds for it, None: as long as it takes.

    Threads take turns as processes do. The folder is made if it does not exist. False: the lock may not be
    written, and nothing else may be; the changes themselves will fail.
    """
    file = _opened(folder)
    if file is None:
        yield False
        return
    try:
        deadline = None if wait is None else time.monotonic() + wait
        while not _locked(file, folder):
            if deadline is not None and time.monotonic() >= deadline:
                raise Busy(f"The index `{folder}` is being changed by another process or thread.")
            time.sleep(POLL)
        try:
            yield True
        finally:
            _unlock(file)
    finally:
        os.close(file)


def _opened(folder: Path) -> int | None:
    """The file of the lock; None where it may not be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        if error.errno in DENIED:
            return None
        raise _unlockable(folder, error) from error


def _locked(file: int, folder: Path) -> bool:
    """Take the lock if nobody has it."""
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
            return False
        raise _unlockable(folder, error) from error
    return True


def _unlock(file: int) -> None:
    """Give the lock back: to close the file is not enough while a forked process has it open, too."""
    if os.name != "nt":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_UN)


def _unlockable(folder: Path, error: OSError) -> LongspanError:
    reason = error.strerror or str(error)
    return LongspanError(
        f"The index `{folder}` cannot be locked: {reason}. Keep it on a disk that has space and file locks."
    )
