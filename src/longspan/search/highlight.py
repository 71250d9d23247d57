"""Highlights: the answer in a text, and the words of a query by the stems that the word index matches."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from longspan.search.words import query_stems, stems, word_spans, words_of

SNIPPET = 600
"""Characters that are shown of a passage, which is seldom longer."""


class Highlighter:
    """Finds the words of a query in some texts.

    >>> Highlighter("flowing", ["It flows here."]).parts("It flows here.")
    [('It ', False), ('flows', True), (' here.', False)]
    """

    def __init__(self, query: str, texts: Iterable[str]) -> None:
        known = set(query_stems(query))
        stem_of = stems(word for text in texts for word in words_of(text))  # one call: each opens a database
        self._known = {word for word, stem in stem_of.items() if stem in known}

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where words of the query stand."""
        return [(start, end) for word, start, end in word_spans(text) if word in self._known]

    def parts(self, text: str) -> list[tuple[str, bool]]:
        """A text, or a piece of one, in parts, each with whether it is a word of the query."""
        parts, here = [], 0
        for start, end in self.spans(text):
            parts += [(text[here:start], False), (text[start:end], True)]
            here = end
        return [part for part in [*parts, (text[here:], False)] if part[0]]


class Excerpt(NamedTuple):
    """A piece of text on one line, and where the answer stands in it; begin = end if nowhere."""

    text: str
    begin: int
    end: int

    @classmethod
    def of(cls, text: str, begin: int, end: int) -> "Excerpt":
        """A text with every run of white space as one blank, and nothing that a terminal would obey.

        >>> Excerpt.of("One.\\n  Two\\nwords.  Three.", 7, 17)
        Excerpt(text='One. Two words. Three.', begin=5, end=15)
        """
        flat = printable(" ".join(text.split()))
        first, last = (len(" ".join(f"{text[:place]}|".split())) - 1 for place in (begin, end))
        last = len(flat[:last].rstrip())
        return cls(flat, first, last) if first < last else cls(flat, 0, 0)

    def cut(self, size: int = SNIPPET) -> "Excerpt":
        """About `size` characters with the answer amid them, cut between words."""
        text = self.text
        if len(text) <= size:
            return self
        spare = max(0, size - (self.end - self.begin)) // 2
        first = max(0, min(self.begin - spare, len(text) - size))
        first = first and (text.find(" ", first, self.begin) + 1 or first)
        last = min(first + size, len(text))
        last = last if last == len(text) else max(text.rfind(" ", self.begin, last), first) or last
        last = last if last > first else first + size
        before, after = "… " if first else "", " …" if last < len(text) else ""
        shift = len(before) - first
        return Excerpt(f"{before}{text[first:last]}{after}", self.begin + shift, min(self.end, last) + shift)

    @property
    def is_answer(self) -> bool:
        """Whether the answer is all of the text."""
        return self.end - self.begin == len(self.text)

    def with_quotes(self) -> "Excerpt":
        """The answer between » and «, for where there is no bold."""
        text, begin, end = self
        return Excerpt(f"{text[:begin]}»{text[begin:end]}«{text[end:]}", 0, 0) if begin < end else self

    def lines(self, width: int | None) -> list[tuple[int, int]]:
        """Where the lines of the text begin and end if none is to be wider; one line if width is None.

        >>> Excerpt("one two three", 0, 0).lines(7)
        [(0, 7), (8, 13)]
        """
        if width is None or len(self.text) <= width:
            return [(0, len(self.text))]
        lines: list[tuple[int, int]] = []
        for word in re.finditer(rf"\S{{1,{width}}}", self.text):
            if lines and word.end() - lines[-1][0] <= width:
                lines[-1] = lines[-1][0], word.end()
            else:
                lines.append(word.span())
        return lines

    def pieces(
        self, words: Sequence[tuple[int, int]], line: tuple[int, int]
    ) -> Iterator[tuple[str, bool, bool]]:
        """A line in pieces, each with whether it is a word of the query and whether it is of the answer.

        words: where those of the whole text begin and end, in order.
        """
        first = bisect_right(words, line[0], key=itemgetter(1))
        near = words[first : bisect_left(words, line[1], lo=first, key=itemgetter(0))]
        answer = self.begin, self.end
        places = {place for span in (*near, answer) for place in span if line[0] < place < line[1]}
        for begin, end in pairwise(sorted({*line, *places})):
            word = bisect_right(near, begin, key=itemgetter(0)) - 1
            yield self.text[begin:end], word >= 0 and begin < near[word][1], answer[0] <= begin < answer[1]


def printable(text: str) -> str:
    """Text without what a terminal would obey, or what cannot be written as UTF-8.

    >>> printable("a\\x1b[2Jb")
    'a�[2Jb'
    """
    clean = "".join(c if c.isprintable() else "�" for c in text)
    return clean.encode("utf-8", "replace").decode()
