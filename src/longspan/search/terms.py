"""The words of a query: their stems, other spellings that the index knows, and where they stand."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from longspan.search.spelling import across_the_ocean, halves, joined, slips
from longspan.search.words import STOP_WORDS, stems, word_spans
from longspan.shapes import IntArray

Known = Callable[[Iterable[str]], set[str]]
"""Which of some stems occur in the index."""


class Term(NamedTuple):
    """A word of a query."""

    start: int
    end: int
    "Its characters in the query."
    stems: tuple[str, ...]
    "Stems that it matches, its own first; none occurs if the index does not know the word."
    together: tuple[str, str] | None = None
    "Stems that match it side by side: its halves."
    name: bool = False
    "Whether it is written as names are: with a capital that does not begin the query, or with several."


def query_terms(query: str, known: Known) -> list[Term]:
    """The words of a query, without stop words unless it has no others; a repeated word counts once.

    A word also matches its British or American spelling and, with the next word, what both make written as
    one. A word that does not occur matches what does at distance 1, or its two halves.

    >>> query_terms("Where is the colour?", lambda stems: {"color"} & set(stems))
    [Term(start=13, end=19, stems=('colour', 'color'), together=None, name=False)]
    """
    spans = word_spans(query)
    content = [span for span in spans if span[0] not in STOP_WORDS] or spans
    words = [word for word, _, _ in content]
    others = {word: across_the_ocean(word) for word in words}
    pairs = dict(joined(words))
    stem_of = stems([*words, *(form for forms in others.values() for form in forms), *pairs.values()])
    present = known(stem_of.values())
    terms: dict[str, Term] = {}
    for place, (word, start, end) in enumerate(content):
        forms = [stem_of[form] for form in others[word] if stem_of[form] in present]
        for pair in (place - 1, place):
            if pair in pairs and stem_of[pairs[pair]] in present:
                forms.append(stem_of[pairs[pair]])
        own = stem_of[word]
        together = None
        if own not in present and not forms:
            forms, together = _guessed(word, known)
        written = query[start:end]
        name = (written[:1].isupper() and start > 0) or any(map(str.isupper, written[1:]))
        terms.setdefault(own, Term(start, end, tuple(dict.fromkeys((own, *forms))), together, name))
    return list(terms.values())


def _guessed(word: str, known: Known) -> tuple[list[str], tuple[str, str] | None]:
    """Stems at distance 1 of a word that does not occur; else its halves, if both occur."""
    stem_of = stems(set(slips(word)))
    near = sorted(known(stem_of.values()))
    if near:
        return near, None
    pairs = halves(word)
    stem_of = stems(half for pair in pairs for half in pair)
    present = known(stem_of.values())
    for first, second in pairs:
        if {stem_of[first], stem_of[second]} <= present:
            return [], (stem_of[first], stem_of[second])
    return [], None


def term_of(terms: Sequence[Term], offsets: Iterable[tuple[int, int]]) -> IntArray:
    """(Q,): the word in which each token begins, -1 for none; words are in the order of the query."""
    starts = np.fromiter((start for start, _ in offsets), np.int64)
    place = np.searchsorted([term.start for term in terms], starts, side="right") - 1
    ends = np.array([*(term.end for term in terms), 0])
    return np.where(starts < ends[place], place, -1)
