"""Highlights: the words of a query in a text, by the same stems that the word index matches."""

from collections.abc import Iterable

from longspan.search.words import query_stems, stems, word_spans, words_of

SNIPPET = 440
"""Characters of a snippet."""


class Highlighter:
    """Finds the words of a query in some texts.

    >>> Highlighter("flowing", ["It flows here."]).parts("It flows here.")
    [('It ', False), ('flows', True), (' here.', False)]
    """

    def __init__(self, query: str, texts: Iterable[str]) -> None:
        known = set(query_stems(query))
        stem_of = stems(word for text in texts for word in words_of(text))  # one call: each opens a database
        self._stem_of = {word: stem for word, stem in stem_of.items() if stem in known}

    def _matches(self, text: str) -> list[tuple[int, int, str]]:
        """Where words of the query stand (start, end), and their stems."""
        spans = word_spans(text)
        return [(start, end, self._stem_of[word]) for word, start, end in spans if word in self._stem_of]

    def parts(self, text: str) -> list[tuple[str, bool]]:
        """A text, or a piece of one, in parts, each with whether it is a word of the query."""
        parts, here = [], 0
        for start, end, _ in self._matches(text):
            parts += [(text[here:start], False), (text[start:end], True)]
            here = end
        return [part for part in [*parts, (text[here:], False)] if part[0]]

    def snippet(self, text: str, size: int = SNIPPET) -> str:
        """About `size` characters from where most different words of the query stand, cut between words."""
        if len(text) <= size:
            return text
        places = [(start, stem) for start, _, stem in self._matches(text)]
        first = max(
            (start for start, _ in places),
            key=lambda start: len({stem for other, stem in places if start <= other < start + size * 3 // 4}),
            default=0,
        )
        first = max(0, min(first - size // 8, len(text) - size))
        begin = first and text.find(" ", first) + 1
        end = text.rfind(" ", 0, begin + size) if begin + size < len(text) else len(text)
        end = end if end > begin else begin + size
        return f"{'… ' if begin else ''}{text[begin:end]}{' …' if end < len(text) else ''}"
