"""What tests ask of the machine: a small disk, how time grows, how much memory was used."""

import shutil
import subprocess
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SLACK = 0.05
"""Seconds that a call may take for nothing."""


@contextmanager
def disk(folder: Path, size: int) -> Iterator[Path]:
    """A file system of so many bytes; where none may be made, the test is skipped, with the reason."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    made = subprocess.run(mount, capture_output=True, text=True) if shutil.which("mount") else None
    if made is None or made.returncode:
        pytest.skip(f"needs a small file system: {made.stderr.strip() if made else 'there is no mount'}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def assert_linear(call: Callable[[int], object], size: int, times: int = 8) -> None:
    """The CPU time of `call(n)` grows with n, not with its square; up to three times as much may be noise.

    Square growth would take `times` times that. The slack lets calls of microseconds pass: choose a size
    whose square would take longer. What a busy machine seems to refute is measured again.
    """
    told = ""
    for _ in range(3):
        small, large = (_seconds(call, n) for n in (size, size * times))
        if large < 3 * times * small + SLACK:
            return
        told = f"{small:.3f} s at {size:,}, {large:.3f} s at {size * times:,}"
    raise AssertionError(told)


def _seconds(call: Callable[[int], object], n: int) -> float:
    began = time.thread_time()
    call(n)
    return time.thread_time() - began


@contextmanager
def using_at_most(limit: int) -> Iterator[None]:
    """What Python and numpy allocate in the block stays within so many bytes."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= limit, f"{peak:,} bytes were in use, {limit:,} were allowed"
