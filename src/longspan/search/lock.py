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


class Busy(LongspanError):
    """Another process is changing the index."""


@contextmanager
def writing(folder: Path, wait: float | None = None) -> Iterator[None]:
    """Hold the lock of an index; wait at most `wait` seconds for it, None: as long as it takes.

    Where the lock may not be written, nothing else may be: the changes themselves will fail.
    """
    file = _opened(folder)
    try:
        deadline = None if wait is None else time.monotonic() + wait
        while file is not None and not _locked(file, folder):
            if deadline is not None and time.monotonic() >= deadline:
                raise Busy(f"The index `{folder}` is being changed by another process.")
            time.sleep(POLL)
        yield
    finally:
        if file is not None:
            os.close(file)  # which frees the lock


def _opened(folder: Path) -> int | None:
    """The file of the lock; None where it may not be written."""
    try:
        return os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
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


def _unlockable(folder: Path, error: OSError) -> LongspanError:
    reason = error.strerror or str(error)
    return LongspanError(
        f"The index `{folder}` cannot be locked: {reason}. Keep it on a disk that has space and file locks."
    )
