"""What tests ask of the machine: how time grows, how much memory was used, and a disk that is full."""

import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

SLACK = 0.05
"""Seconds that a call may take for nothing."""


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


@contextmanager
def full_at(limit: int) -> Iterator[None]:
    """No file can grow beyond some bytes."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
