"""Regular files: opened without ever waiting, whatever takes their place."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from longspan.text.files.parsed import Refusal

CHUNK = 1 << 20
MOST_UNDECLARED = 256 << 20
"""Bytes that are read of a file that says it has none, as those of /proc do."""
SPECIAL = "it is a pipe, a device or a socket, not a file"


def opened(path: Path) -> BinaryIO:
    """Open a regular file; pipes and devices are never opened, let alone waited for."""
    try:
        status = path.stat()
    except ValueError:
        raise Refusal("its name holds a NUL character") from None
    _check(status)
    # If a pipe takes its place now, O_NONBLOCK keeps us from waiting for a writer; nor do we wait
    # for a program that has a lease on the file, or for the next message of the kernel.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = os.fdopen(os.open(path, flags), "rb")
    try:
        _check(os.fstat(file.fileno()))
    except Refusal:
        file.close()
        raise
    return file


def read(file: BinaryIO, most: int) -> bytes:
    """Up to `most` bytes; an OSError where we would have to wait for them."""
    data = file.read(most)
    if data is None:
        raise BlockingIOError(errno.EAGAIN, "it has nothing to read now, like a pipe")
    return data


def chunks(path: Path) -> Iterator[bytes]:
    """All bytes of a file, piece by piece; an OSError if it has no end."""
    with opened(path) as file:
        most = max(os.fstat(file.fileno()).st_size + CHUNK, MOST_UNDECLARED)
        while data := read(file, CHUNK):
            yield data
            most -= len(data)
            if most < 0:
                raise OSError(errno.EFBIG, "it does not end, or grows while it is read")


def _check(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise Refusal("it is a folder", "Use walk() to find the files in it.")
    if not stat.S_ISREG(status.st_mode):
        raise Refusal(SPECIAL)
