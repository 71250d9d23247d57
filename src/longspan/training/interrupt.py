"""Ctrl-C and SIGTERM while a run is trained: they end it between two changes, never inside one."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """A signal that asks to stop."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Signals:
    """What was asked of the process; at once an exception, unless it is inside of `held`."""

    def __init__(self) -> None:
        self.came: int | None = None
        self._held = 0

    def receive(self, number: int, frame: FrameType | None) -> None:
        self.came = number
        if not self._held:
            self.stop()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside the block a signal is only noted; `check` raises it."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    def check(self) -> None:
        """Raise what was noted, if anything was."""
        if self.came is not None and not self._held:
            self.stop()

    def stop(self) -> NoReturn:
        """End the run; from now on signals are only noted, as nothing may disturb what is saved then."""
        self._held += 1
        raise Interrupted(self.came or signal.SIGTERM)


@contextmanager
def watching() -> Iterator[Signals]:
    """Signals inside the block; in other threads than the main one, Python gets none."""
    signals = Signals()
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    before = {number: signal.signal(number, signals.receive) for number in SIGNALS}
    try:
        yield signals
    finally:
        with signals.held():
            for number, handler in before.items():
                signal.signal(number, handler)
