"""What can be wrong with an index: it is damaged, in use, not writable, or the disk is full."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longspan.errors import CheckpointError, LongspanError
from longspan.search.lock import DENIED, Busy, ReadOnly

DAMAGE = ("CORRUPT", "NOTADB", "ERROR", "CONSTRAINT", "MISMATCH", "FORMAT", "SCHEMA", "RANGE", "EMPTY")
"""What SQLite says only of a file whose content is wrong."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Full(LongspanError):
    """The disk of the index has no room."""


def damaged(folder: Path, reason: str) -> CheckpointError:
    """The error for an index that can no longer be trusted."""
    repair = f"Rebuild it: longspan index --index {folder} --rebuild"
    return CheckpointError(f"The index `{folder}` is damaged: {reason}. {repair}")


def unusable(folder: Path, error: OSError | sqlite3.Error) -> LongspanError:
    """The error for an index that cannot be read or written, though nothing is wrong with it."""
    code = getattr(error, "errno", None)
    name = str(getattr(error, "sqlite_errorname", ""))
    reason = getattr(error, "strerror", None) or str(error)
    if name == "SQLITE_FULL" or code in FULL:
        repair = "Make room on the disk and run this again: what was done is kept."
        return Full(f"The index `{folder}` cannot be used: {reason}. {repair}")
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")) or code in DENIED:
        return ReadOnly(f"The index `{folder}` cannot be written: {reason}.")
    return LongspanError(f"The index `{folder}` cannot be used: {reason}.")


@contextmanager
def guarded(folder: Path) -> Iterator[None]:
    """SQLite's errors as ours: in use, not usable, or damaged."""
    try:
        yield
    except sqlite3.Error as error:
        name = str(getattr(error, "sqlite_errorname", "")).removeprefix("SQLITE_")
        if name.startswith(("BUSY", "LOCKED")):
            raise Busy(f"The index `{folder}` is in use by another process.") from error
        undecodable = not name and isinstance(error, sqlite3.OperationalError)
        if name.startswith(DAMAGE) or undecodable:
            raise damaged(folder, str(error)) from error
        raise unusable(folder, error) from error


@contextmanager
def sound(folder: Path) -> Iterator[None]:
    """Report wrong types or sizes of what is read inside as damage: nothing else can have caused them."""
    try:
        yield
    except LongspanError:
        raise
    except (TypeError, ValueError, LookupError, OverflowError, AttributeError) as error:
        raise damaged(folder, f"its content makes no sense ({error})") from error
