"""The progress bar: one look for everything that takes a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

DELAY = 2.0
"""Seconds before a bar appears that nobody asked for."""


class _Bar(Protocol):
    """What we use of tqdm, which has no type hints."""

    total: int

    def update(self, n: int) -> object: ...
    def set_postfix_str(self, s: str, refresh: bool) -> object: ...


class Progress:
    """What running work reports to; without a bar it does nothing."""

    def __init__(self, bar: _Bar | None = None) -> None:
        self._bar = bar

    def update(self, count: int) -> None:
        """Count this many units as done, or as not done if it is negative."""
        if self._bar is not None:
            self._bar.update(count)

    def expect(self, total: int) -> None:
        """Change the number of units that there are."""
        if self._bar is not None:
            self._bar.total = total

    def status(self, text: str) -> None:
        """Say beside the bar what is being done now."""
        if self._bar is not None:
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update(0)  # draws, but not more often than tqdm would


class Estimate:
    """How many tokens there are, of which only the characters are known beforehand."""

    def __init__(self, bar: Progress, characters: int) -> None:
        self._bar, self._characters = bar, characters
        self._seen = self._tokens = 0

    def learn(self, characters: int, tokens: int) -> None:
        """Some of the characters are so many tokens; the others are expected to be like them."""
        self._seen, self._tokens = self._seen + characters, self._tokens + tokens
        self._bar.expect(round(self._tokens * max(1.0, self._characters / max(1, self._seen))))


@contextmanager
def progress_bar(
    total: int,
    unit: str,
    *,
    done: int = 0,
    shown: bool | None = None,
    delay: float = DELAY,
    scale: bool = False,
    leave: bool = True,
) -> Iterator[Progress]:
    """A bar on stderr over `total` units, such as "tokens" or "documents".

    `shown=None` shows it on a terminal or in a notebook, and only if the work takes longer than `delay`
    seconds; True shows it at once. `done` units were done before, which tells nothing of the speed. `scale`
    writes 12.3k for 12,300; `leave=False` erases the finished bar.
    """
    if shown is False or total < 1:
        yield Progress()
        return
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    disable, delay = (False, 0.0) if shown else (None, delay)  # None: unless stderr is a terminal
    look = {"unit": f" {unit}", "unit_scale": scale, "leave": leave, "miniters": 0}  # 0: draws status changes
    with tqdm(total=total, initial=done, disable=disable, delay=delay, **look) as bar:
        yield Progress(bar)
