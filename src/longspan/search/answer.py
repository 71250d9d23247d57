"""The answering sentence: of the sentences of a passage, the one that says most of what is asked."""

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from longspan.search.fusion import wants
from longspan.search.words import stems, word_spans

if TYPE_CHECKING:
    from longspan.search.rank import Signals

_END = re.compile(r"[.!?…;][\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\W_])|[。！？]|\n[^\S\n]*\n\s*")
SHORTEST = 20
"""Characters below which a piece is not a sentence, but a number, an initial or an abbreviation."""


def sentences(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a text begin and end; short pieces belong to what follows them.

    >>> text = "See No. 7 of the annex here. Fees are due on Monday. "
    >>> [text[a:b] for a, b in sentences(text)]
    ['See No. 7 of the annex here.', 'Fees are due on Monday.']
    """
    cuts = [0]
    for match in _END.finditer(text):
        if match.end() - cuts[-1] >= SHORTEST and match.end() < len(text):
            cuts.append(match.end())
    spans = []
    for start, end in pairwise((*cuts, len(text))):
        piece = text[start:end]
        begin = start + len(piece) - len(piece.lstrip())
        spans.append((begin, max(begin, start + len(piece.rstrip()))))
    return spans


def answering_sentence(text: str, query: "Signals") -> tuple[int, int]:
    """Where the sentence that answers best begins and ends: the rarest words of the query, of the kind asked."""
    spans = sentences(text)
    if len(spans) < 2:
        return spans[0] if spans else (0, len(text))
    rarity = {stem: query.said.rarity[i] for i, term in enumerate(query.terms) for stem in term.stems}
    words = [word_spans(text[a:b]) for a, b in spans]
    stem_of = stems(word for own in words for word, _, _ in own)
    scores = []
    for (a, b), own in zip(spans, words, strict=True):
        held = {stem_of[word] for word, _, _ in own}
        fits = sum(value for stem, value in rarity.items() if stem in held) / query.said.total
        scores.append(fits + 0.3 * wants(query.text, text[a:b]))
    return spans[int(np.argmax(scores))]
