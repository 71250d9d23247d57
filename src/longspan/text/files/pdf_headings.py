"""The headings of a PDF: its outline, else the lines in larger letters."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from longspan.text.files.parsed import LONGEST_HEADING, Heading, as_heading

MOST_BOOKMARKS = 5000
LARGER = 1.15
"""How many times larger than most letters those of a heading are."""
MOST_LINES = 3
MOST_REPEATS = 3
"""What is repeated on more pages is a running head."""
MOST_SHARE = 0.2
"""Of a text; larger letters than this share are not those of headings."""


class Line(NamedTuple):
    """A line of a page: where it begins in the text, its characters and how high its first letter is."""

    start: int
    text: str
    height: float


class Bookmark(NamedTuple):
    """An entry of the outline: its title, its level from 1 and its page from 0."""

    title: str
    level: int
    page: int


def from_outline(bookmarks: Iterable[Bookmark], text: str, pages: Sequence[int]) -> list[Heading]:
    """Each entry at its words on its page, or where the page begins.

    >>> from_outline([Bookmark("Late  fees", 2, 1)], "One\\n\\nTwo\\nLate fees", [0, 5])
    [Heading(start=9, level=2, text='Late fees')]
    """
    headings = []
    for title, level, page in islice(bookmarks, MOST_BOOKMARKS):
        words = as_heading(title).split()
        if not words or not 0 <= page < len(pages):
            continue
        end = pages[page + 1] if page + 1 < len(pages) else len(text)
        pattern = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
        place = pattern.search(text, pages[page], end)
        headings.append(Heading(place.start() if place else pages[page], level, " ".join(words)))
    return sorted(headings, key=lambda heading: heading.start)


def from_letters(lines: Sequence[Line], pages: Sequence[int]) -> list[Heading]:
    """Lines in larger letters than most, the largest on level 1; a few lines in a row are one heading."""
    heights: Counter[float] = Counter()
    for line in lines:
        heights[round(line.height, 1)] += len(line.text)
    if not heights:
        return []
    usual = heights.most_common(1)[0][0]
    groups: list[list[Line]] = []
    for line in lines:
        if line.height < LARGER * usual or not line.text.strip():
            groups.append([])
        elif groups and groups[-1] and _continues(groups[-1][-1], line, pages):
            groups[-1].append(line)
        else:
            groups.append([line])
    titles = [(group, " ".join(line.text for line in group)) for group in groups if group]
    size = sum(len(title) for _, title in titles)
    repeats = Counter(as_heading(title) for _, title in titles)
    kept = [
        (group, as_heading(title))
        for group, title in titles
        if len(group) <= MOST_LINES
        and 3 <= len(title.strip()) <= LONGEST_HEADING
        and sum(map(str.isalpha, title)) >= 0.5 * len(title.strip())
        and repeats[as_heading(title)] <= MOST_REPEATS
    ]
    if size > MOST_SHARE * sum(heights.values()):
        return []
    ranks = sorted({round(group[0].height) for group, _ in kept}, reverse=True)
    return [Heading(group[0].start, ranks.index(round(group[0].height)) + 1, title) for group, title in kept]


def _continues(before: Line, line: Line, pages: Sequence[int]) -> bool:
    same_page = bisect_right(pages, before.start) == bisect_right(pages, line.start)
    return same_page and abs(before.height - line.height) < 0.05 * line.height
