"""Passages: a text cut into pieces of some size, between paragraphs or sentences if possible."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from longspan.shapes import FloatArray, IntArray

MOST = 126
"""The most tokens of a passage."""
PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*|\n(?=#{1,6} )|\f")
SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n")


LONGEST = 560
"""The most characters of a passage of an index: what a reader takes in at a glance."""
_SENTENCES = (
    (re.compile(r"[.!?…][\"'”’)\]]*\s+"), ""),
    (re.compile("[。！？]"), "。"),
    (re.compile(r"\n"), "\n"),
)
_PARAGRAPHS = (
    (re.compile(r"\n[^\S\n]*\n\s*"), "\n"),
    (re.compile(r"\f"), "\f"),
    (re.compile(r"\n(?=#{1,6} )"), "\n#"),
)
"""What ends a sentence or line, or a paragraph, and what a text must hold for it to be sought."""
_REACH = 32
_INSIDE = re.compile(r"[\"'”’)\]]*\s*")
"""What a match of _SENTENCES may hold behind its first character."""


class Passage(NamedTuple):
    """Tokens `first` to before `behind` of a document: its characters `start` to before `end`."""

    first: int
    behind: int
    start: int
    end: int


def split(text: str, offsets: IntArray, most: int = MOST) -> list[Passage]:
    """Passages of a text whose tokens are at `offsets` (n, 2), cut at the best boundary in reach.

    They have at most `most` tokens, about four fifths of that, and at least two fifths unless the text is
    shorter.

    >>> text = "One two three. " * 30
    >>> spans = np.array([match.span() for match in re.finditer(r"[A-Za-z]+|[.]", text)])
    >>> [text[p.start : p.end][-4:] for p in split(text, spans)]
    ['ree.']
    >>> [p.behind - p.first for p in split(text * 2, np.vstack([spans, spans + len(text)]))]
    [100, 88, 52]
    """
    n = len(offsets) if text.strip() else 0  # byte-level tokenizers have tokens of white space
    least, usual = most * 2 // 5, most * 4 // 5
    worth = _boundaries(text, offsets)
    cuts = [0]
    while n - cuts[-1] > most:
        low, high = cuts[-1] + least, min(cuts[-1] + most, n - least)
        places = np.arange(low, high + 1)
        near = np.abs(places - cuts[-1] - usual) / (4 * most)  # below 1: a better boundary always wins
        cuts.append(int(places[np.argmax(worth[low : high + 1] - near)]))
    cuts = [*cuts, n] if n else []
    return [Passage(a, b, int(offsets[a, 0]), int(offsets[a:b, 1].max())) for a, b in pairwise(cuts)]


def tile(text: str, headings: Iterable[int] = (), most: int = LONGEST) -> list[int]:
    """Where passages of at most `most` characters begin, cut at the best boundary in reach.

    Together they are the whole text, white space included: each ends where the next begins. `headings` are
    places where a section begins, the best of all boundaries. A text of white space has no passages.

    >>> tile("One two. Three four. Five six.", most=22)
    [0, 21]
    """
    if not text or text.isspace():
        return []
    worth = dict.fromkeys(_ends(text, _PARAGRAPHS), 3) | dict.fromkeys(headings, 4)
    places, sentences = sorted(worth), _Sentences(text)
    least, usual, end = most * 2 // 5, most * 4 // 5, len(text.rstrip())
    starts = [0]
    while end - starts[-1] > most:
        here = starts[-1]
        low, high, goal = here + least, min(here + most, end - least), here + usual
        near = places[bisect_left(places, low) : bisect_right(places, high)]
        if near:
            cut = max([(worth[place] - abs(place - goal) / (4 * most), place) for place in near])[1]
        elif near := (  # the nearest to the goal wins, so what is far from it is looked at last
            sentences.between(max(low, goal - most // 8), min(high, goal + most // 8))
            or sentences.between(low, high)
        ):
            cut = max([(-abs(place - goal), place) for place in near])[1]
        else:
            cut = max(text.rfind(" ", low, high), text.rfind("\t", low, high)) + 1 or high
        starts.append(cut)
    return starts


class _Sentences:
    """Where sentences and lines end, sought only where paragraphs do not."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._patterns = [pattern for pattern, mark in _SENTENCES if mark in text]

    def between(self, low: int, high: int) -> list[int]:
        """The ends from `low` to `high`."""
        begin = max(0, low - _REACH)
        if _INSIDE.fullmatch(self._text, begin, low):  # a match may have begun before
            return self._all[bisect_left(self._all, low) : bisect_right(self._all, high)]
        ends = [
            match.end() for each in self._patterns for match in each.finditer(self._text, begin, high + 1)
        ]
        return [place for place in ends if low <= place <= high]

    @cached_property
    def _all(self) -> list[int]:
        return sorted(_ends(self._text, _SENTENCES))


def _ends(text: str, patterns: Sequence[tuple[re.Pattern[str], str]]) -> set[int]:
    """Where the matches of some patterns end, each sought if the text holds its mark."""
    sought = [pattern for pattern, mark in patterns if mark in text]
    return {match.end() for pattern in sought for match in pattern.finditer(text)}


def _boundaries(text: str, offsets: IntArray) -> FloatArray:
    """What a cut before each token is worth: 3 between paragraphs, 2 sentences, 1 words, 0 inside a word."""
    starts, ends = offsets[:, 0], offsets[:, 1]
    worth = np.zeros(len(offsets) + 1, np.float32)
    worth[1:-1] = starts[1:] > ends[:-1]
    for value, boundary in ((2, SENTENCE), (3, PARAGRAPH)):
        places = np.array([match.end() for match in boundary.finditer(text)], np.int64)
        worth[np.searchsorted(starts, places)] = value
    return worth
