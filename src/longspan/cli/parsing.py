"""How a verb reads its arguments: options may stand before, behind and between files."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from longspan.errors import guess


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

    def __init__(self, *, examples: Sequence[str] = (), epilog: str = "", **options: Any) -> None:
        shown = "\n".join(["examples:", *(f"  {example}" for example in examples)]) if examples else ""
        text = "\n\n".join(filter(None, (shown, epilog)))
        super().__init__(epilog=text, formatter_class=argparse.RawDescriptionHelpFormatter, **options)
        # Left out means unchanged, since the option may stand before the verb, too.
        for flags, help_ in (
            (("-q", "--quiet"), "say only what is wrong"),
            (("-v", "--verbose"), "say more"),
        ):
            self.add_argument(*flags, action="store_true", default=argparse.SUPPRESS, help=help_)

    def error(self, message: str) -> NoReturn:
        """Tell a mistake in one line; argparse would print all options before it."""
        end = "" if message.endswith((".", "?")) else "."
        self.exit(2, f"{self.prog}: {message}{end} See `{self.prog} --help`.\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """argparse's own, in its form for mixed arguments, which calls this again and knows no verbs."""
        if self._entered or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._entered = True
        try:
            found, unknown = self.parse_known_intermixed_args(self._completed(args), namespace)
        finally:
            self._entered = False
        if unknown:  # told here, for the program knows only the options of all verbs
            meant = next(filter(None, (guess(word, self._option_string_actions) for word in unknown)), "")
            self.error(f"unrecognized arguments: {' '.join(unknown)}. {meant}".rstrip(". "))
        return found, unknown

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """argparse's own, which also says what may have been meant."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            meant = guess(value, map(str, action.choices or ()))
            raise argparse.ArgumentError(action, ". ".join(filter(None, (error.message, meant)))) from None

    def _completed(self, args: Sequence[str] | None) -> list[str]:
        """The arguments with the numbers that were left out."""
        given = list(sys.argv[1:] if args is None else args)
        return [
            f"{argument}={self.numbers[argument]}"
            if argument in self.numbers and not following.isdecimal()
            else argument
            for argument, following in zip(given, [*given[1:], ""], strict=False)
        ]
