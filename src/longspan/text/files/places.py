"""Where a person finds a character of the text in the file: on a line, a slide, in a row or a paragraph."""

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LINE = "line"
"""The unit of files whose lines a person can go to."""
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")


@dataclass(frozen=True)
class Places:
    """Numbered places in the order of the text, such as the lines of a page of HTML; empty if none are known.

    >>> places = Places((0, 9), (1, 4), ((0, "sheet Prices, row"),))
    >>> places.label(12), places.number(12, "line")
    ('sheet Prices, row 4', None)
    """

    starts: Sequence[int] = ()
    "Where each begins in the text."
    numbers: Sequence[int] = ()
    units: tuple[tuple[int, str], ...] = ()
    "What is counted, such as lines, from a place on: its position in `starts`, and the unit."

    def label(self, offset: int) -> str:
        """The place of a character in words; "" if none is known."""
        found = self._at(offset)
        return f"{found[0]} {found[1]}" if found else ""

    def number(self, offset: int, unit: str) -> int | None:
        """The number of the place of a character, if it is one of these units."""
        found = self._at(offset)
        return found[1] if found and found[0] == unit else None

    def _at(self, offset: int) -> tuple[str, int] | None:
        if not self.starts:
            return None
        place = max(0, bisect_right(self.starts, offset) - 1)
        return self.units[bisect_right(self.units, place, key=lambda run: run[0]) - 1][1], self.numbers[place]

    def __bool__(self) -> bool:
        return len(self.starts) > 0

    def __len__(self) -> int:
        return len(self.starts)


NOWHERE = Places()


class Marks:
    """Places, collected while a text is written."""

    def __init__(self) -> None:
        self._starts, self._numbers = array("q"), array("q")
        self._units: list[tuple[int, str]] = []

    def add(self, start: int, unit: str, number: int) -> None:
        """From `start` on the text stands here, until the next place."""
        new = not self._units or self._units[-1][1] != unit
        if not new and self._numbers[-1] == number:
            return
        if new:
            self._units.append((len(self._starts), unit))
        self._starts.append(start)
        self._numbers.append(number)

    @property
    def places(self) -> Places:
        """All of them."""
        return Places(tuple(self._starts), tuple(self._numbers), tuple(self._units))


def counted(unit: str, starts: Iterable[int]) -> Places:
    """Places with the numbers 1, 2, 3.

    >>> counted("slide", [0, 40]).label(50)
    'slide 2'
    """
    begins = tuple(starts)
    return Places(begins, range(1, len(begins) + 1), ((0, unit),)) if begins else NOWHERE


def joined(first: Places, second: Places) -> Places:
    """The places of a text, then those of what stands behind it."""
    size = len(first)
    units = (*first.units, *((size + begin, unit) for begin, unit in second.units))
    return Places((*first.starts, *second.starts), (*first.numbers, *second.numbers), units)


def paragraphs(text: str) -> Places:
    """What blank lines separate, for formats in which a reader sees no lines.

    >>> paragraphs("One.\\n\\nTwo.").label(7)
    'paragraph 2'
    """
    return counted("paragraph", [0, *(match.end() for match in _BLANK_LINES.finditer(text))])
