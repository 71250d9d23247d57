"""Where a benchmark is: a line on stderr for each item."""

import sys
from collections.abc import Collection, Iterator, Sequence
from typing import TypeVar

from longspan.errors import bad

T = TypeVar("T")


def progress(items: Sequence[T]) -> Iterator[T]:
    """The items, each named on stderr before it is run."""
    live = sys.stderr.isatty()
    for index, item in enumerate(items, 1):
        line = f"[{index}/{len(items)}] {item}"
        print(f"\r\033[K{line}" if live else line, end="" if live else "\n", file=sys.stderr, flush=True)
        yield item
    if live:
        print("\r\033[K", end="", file=sys.stderr)


def named(names: Sequence[str], known: Collection[str], on_request: Sequence[str] = ()) -> Iterator[str]:
    """The named cases (all but those on request, if none is named), each announced."""
    for name in names:
        if name not in known:
            raise bad("case", f"one of {', '.join(known)}", name)
    return progress(names or [name for name in known if name not in on_request])


def step(line: str) -> None:
    """Say where a slow item is; on a terminal only, in place of the last line."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
