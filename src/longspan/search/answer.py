"""The answering sentence: of the sentences of a passage, the one that says most of what is asked."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from longspan.search.fusion import wants
from longspan.search.section import behind_headings
from longspan.search.words import stems, words_of
from longspan.shapes import FloatArray, IntArray

if TYPE_CHECKING:
    from longspan.search.rank import Signals

_END = re.compile(
    r"(?<!\b[A-Z])(?<!\bMr)(?<!\bMrs)(?<!\bDr)(?<!\bNo)[.!?…;][\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W_])"
    r"|[。！？]|\n[^\S\n]*\n\s*"
)
"""An initial or a title does not end a sentence."""
_ROW = re.compile(r"\n\s*")
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")
SHORTEST = 20
"""Characters below which a piece is not a sentence, but a number, an initial or an abbreviation."""


def sentences(text: str, *, rows: bool = False) -> list[tuple[int, int]]:
    """Where the sentences of a text begin and end; short pieces belong to what follows them.

    `rows`: it is a table, and each of its lines is a sentence.

    >>> text = "See No. 7 of the annex here. Fees are due on Monday. "
    >>> [text[a:b] for a, b in sentences(text)]
    ['See No. 7 of the annex here.', 'Fees are due on Monday.']
    """
    cuts = [0]
    for match in (_ROW if rows else _END).finditer(text):
        if match.end() - cuts[-1] >= (1 if rows else SHORTEST) and match.end() < len(text):
            cuts.append(match.end())
    spans = []
    for start, end in pairwise((*cuts, len(text))):
        piece = text[start:end]
        begin = start + len(piece) - len(piece.lstrip())
        spans.append((begin, max(begin, start + len(piece.rstrip()))))
    return spans


def answering_sentence(
    text: str,
    query: "Signals",
    document: int,
    tokens: tuple[IntArray, FloatArray] | None = None,
    headings: Sequence[str] = (),
    *,
    rows: bool = False,
) -> tuple[int, int]:
    """Where the sentence that answers best begins and ends; none of the `headings` if there is another.

    Each word of the query counts as it is rare inside of the document. `tokens` are the places (n,) of the
    tokens of the text, and their products (n, Q) with those of the query; without, words must be the same.
    """
    spans = [(behind_headings(text, start, end, headings), end) for start, end in sentences(text, rows=rows)]
    if len(spans) < 2:
        return _from_longest(text, *(spans[0] if spans else (0, len(text))))
    rarity = query.said.rarity_inside[:, document]
    if tokens is None:
        scores = _by_words([text[a:b] for a, b in spans], query, rarity)
    else:
        places, products = tokens
        weights = token_weights(query, rarity)
        owner = np.maximum(np.searchsorted([start for start, _ in spans], places, side="right") - 1, 0)
        maxima = np.full((len(spans), len(weights)), -1.0)
        np.maximum.at(maxima, owner, products)
        scores = maxima @ weights / weights.sum()
    wanted = np.array([wants(query.text, text[a:b]) for a, b in spans])
    titles = [heading.split() for heading in headings]
    heading = np.array([text[a:b].split() in titles for a, b in spans])
    return _from_longest(text, *spans[int(np.argmax(scores + 0.1 * wanted - 9.0 * heading))])


def _from_longest(text: str, start: int, end: int) -> tuple[int, int]:
    """A sentence without what blank lines part from it, such as the number of the page before.

    >>> _from_longest("17\\n\\nFees are due on Monday.", 0, 27)
    (4, 27)
    """
    starts = [start, *(match.end() for match in _BLANK_LINES.finditer(text, start, end))]
    sizes = [len(text[a:b].rstrip()) for a, b in pairwise((*starts, end))]
    return starts[int(np.argmax(sizes))], end


def token_weights(query: "Signals", rarity: FloatArray) -> FloatArray:
    """(T,) -> (Q,): how much each token of a query counts, if its words count as given; never all nothing."""
    weights = np.append(rarity, 0.0)[query.term_of]
    return weights if weights.any() else np.ones(len(weights))


def _by_words(texts: Sequence[str], query: "Signals", rarity: FloatArray) -> FloatArray:
    stem_of = stems(word for text in texts for word in words_of(text))
    held = [{stem_of[word] for word in words_of(text)} for text in texts]
    scores = [
        sum(value for value, term in zip(rarity, query.terms, strict=True) if own & set(term.stems))
        for own in held
    ]
    return np.array(scores) / max(float(rarity.sum()), 1e-9)
