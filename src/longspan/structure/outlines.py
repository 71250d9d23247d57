"""Outlines of plain texts: blocks of tokens, sentences, paragraphs."""

import re

import numpy as np
import numpy.typing as npt

from longspan.errors import whole
from longspan.shapes import IntArray
from longspan.structure.structure import WORDPIECE, Outline, Words
from longspan.text.passages import PARAGRAPH, SENTENCE


def blocks(n: int, size: int, *, words: Words = WORDPIECE) -> Outline:
    """A global token for every `size` of n tokens: all that can be said of a text without structure.

    >>> blocks(7, 3).parent.tolist(), blocks(7, 3).words.tolist()
    ([0, 0, 0, 1, 1, 1, 2], [1, 1, 1])
    """
    parent = np.arange(whole("n", n, 0)) // whole("size", size, 1)
    return Outline(words=_sentence_words(parent, words), parent=parent)


def sentences(text: str, offsets: npt.ArrayLike, *, words: Words = WORDPIECE) -> Outline:
    """A global token for each sentence of `text` that has tokens, which lie at `offsets` (n, 2).

    A sentence ends behind . ! ? or …, closing quotes and brackets included, where white space follows; behind
    a full stop of Chinese and Japanese; and with its line. A token belongs where it begins; tokens without
    characters (CLS, SEP) belong to none.

    >>> spans = [(0, 0), (0, 2), (2, 3), (4, 6), (6, 7), (0, 0)]
    >>> sentences("Oh! No.", spans).parent.tolist()
    [-1, 0, 0, 1, 1, -1]
    """
    parent = _numbered(text, _spans(offsets), SENTENCE)
    return Outline(words=_sentence_words(parent, words), parent=parent)


def paragraphs(text: str, offsets: npt.ArrayLike, *, words: Words = WORDPIECE) -> Outline:
    """As `sentences`; each paragraph is a segment and has a global token before those of its sentences.

    Paragraphs are parted by blank lines, form feeds and headings of Markdown.

    >>> spans = [(0, 2), (2, 3), (4, 6), (6, 7), (9, 12)]
    >>> outline = paragraphs("Oh! No.\\n\\nYes", spans)
    >>> outline.parent.tolist(), outline.paragraph.tolist(), outline.words.tolist()
    ([1, 1, 2, 2, 4], [0, 0, 0, 0, 3], [5, 1, 1, 5, 1])
    """
    spans = _spans(offsets)
    sentence, paragraph = _numbered(text, spans, SENTENCE, PARAGRAPH), _numbered(text, spans, PARAGRAPH)
    opens = sentence[np.unique(paragraph, return_index=True)[1]]
    opens = np.unique(opens[opens >= 0])  # the first sentence of each paragraph
    place = np.arange(sentence.max(initial=-1) + 1)
    place += np.searchsorted(opens, place, side="right")  # each paragraph's own stands before
    top = place[opens] - 1
    heading = np.isin(np.arange(place.size + top.size), top)
    return Outline(
        words=np.where(heading, words.paragraph, words.sentence),
        parent=np.append(place, -1)[sentence],
        paragraph=np.append(top, -1)[paragraph],
        segment=paragraph,
        global_segment=np.cumsum(heading) - 1,
    )


def _sentence_words(parent: IntArray, words: Words) -> IntArray:
    return np.full(int(parent.max(initial=-1)) + 1, words.sentence)


def _spans(offsets: npt.ArrayLike) -> IntArray:
    return np.asarray(offsets, np.int64).reshape(-1, 2)


def _numbered(text: str, spans: IntArray, *borders: "re.Pattern[str]") -> IntArray:
    """(n,) in which stretch between borders each token begins, of those that have tokens; -1 for no text."""
    cuts = sorted({match.end() for border in borders for match in border.finditer(text)})
    inside = spans[:, 1] > spans[:, 0]
    stretch = np.searchsorted(cuts, spans[:, 0], side="right")
    number = np.full(len(spans), -1)
    number[inside] = np.unique(stretch[inside], return_inverse=True)[1]
    return number
