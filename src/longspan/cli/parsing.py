"""How a verb reads its arguments: options may stand before, behind and between files."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any


class Verb(argparse.ArgumentParser):
    """A parser that takes `QUERY --top 1 PATH` as well as `QUERY PATH --top 1`.

    >>> verb = Verb()
    >>> _ = verb.add_argument("paths", nargs="*"), verb.add_argument("--open", type=int)
    >>> verb.numbers = {"--open": 1}
    >>> verb.parse_args(["a", "--open", "b", "--open=3"]).paths
    ['a', 'b']
    """

    numbers: Mapping[str, int] = {}
    "Options whose number may be left out, and what it is then; a path behind them is no number."
    _entered = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """argparse's own, in its form for mixed arguments, which calls this again and knows no verbs."""
        if self._entered or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._entered = True
        try:
            return self.parse_known_intermixed_args(self._completed(args), namespace)
        finally:
            self._entered = False

    def _completed(self, args: Sequence[str] | None) -> list[str]:
        """The arguments with the numbers that were left out."""
        given = list(sys.argv[1:] if args is None else args)
        return [
            f"{argument}={self.numbers[argument]}"
            if argument in self.numbers and not following.isdecimal()
            else argument
            for argument, following in zip(given, [*given[1:], ""], strict=False)
        ]
