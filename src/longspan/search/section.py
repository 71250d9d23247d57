"""The section of an answer, where another one begins inside of its passage."""

import re
from collections.abc import Sequence

_MARKS = "#*_= \t\n"
"""What may stand before a heading."""
Section = tuple[str, ...]
"""Headings, the outermost first."""


def section_at(place: int, text: str, section: Section, behind: Sequence[tuple[str, Section]]) -> Section:
    """The headings that the character at `place` of a passage stands under, as far as is known.

    That is the section where the passage begins, unless the next passage, the first of those `behind`, stands
    under other headings and they are found in this passage, not behind `place`.

    >>> section_at(20, "1 Fees\\nNone.\\n2 Rent\\nIt is due", ("1 Fees",), [("on Monday.", ("2 Rent",))])
    ('2 Rent',)
    """
    next_text, following = behind[0] if behind else ("", section)
    if following and _pattern(following[-1]).match(next_text.lstrip(_MARKS)):
        following = following[:-1]  # it begins there
    for depth in range(1, len(following) + 1):
        if section[:depth] != following[:depth]:
            heading = _pattern(following[depth - 1]).search(text)
            if heading is None or len(text[: heading.start()].rstrip(_MARKS)) > place:
                break
            section = following[:depth]
    return section


def behind_headings(text: str, start: int, end: int, headings: Sequence[str]) -> int:
    """Where the text from `start` on goes on behind lines that are headings; `start` if it does not.

    >>> behind_headings("# Fees\\nNone.", 0, 13, ["Fees"])
    7
    """
    for heading in filter(str.strip, headings):
        here = start + len(text[start:end]) - len(text[start:end].lstrip(_MARKS))
        begun = re.compile(_pattern(heading).pattern + r"\s*\n\s*").match(text, here, end)
        start = begun.end() if begun and begun.end() < end else start
    return start


def _pattern(heading: str) -> re.Pattern[str]:
    """The words of a heading, with any white space between them."""
    return re.compile(r"(?<!\w)" + r"\s+".join(map(re.escape, heading.split())))
