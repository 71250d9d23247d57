"""How a verb reads its arguments: options may stand before, behind and between files."""

import argparse
from typing import Any


class Verb(argparse.ArgumentParser):
    """A parser that takes `QUERY --top 1 PATH` as well as `QUERY PATH --top 1`.

    >>> verb = Verb()
    >>> _ = verb.add_argument("paths", nargs="*"), verb.add_argument("--top")
    >>> verb.parse_args(["a", "--top", "1", "b"]).paths
    ['a', 'b']
    """

    _entered = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """argparse's own, in its form for mixed arguments, which calls this again and knows no verbs."""
        if self._entered or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._entered = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._entered = False
