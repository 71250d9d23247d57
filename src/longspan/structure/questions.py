"""Questions laid out with what may answer them: token ids, types and outline for four datasets.

Everything is given as lists of token ids without special tokens, and comes back as one text for the long
stream with the outline of its global tokens (ETC, section 4; the layouts of etcmodel).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import numpy as np

from longspan.errors import bad
from longspan.shapes import IntArray
from longspan.structure.structure import WORDPIECE, Outline, Words

Tokens = Sequence[int]
GLOBAL, SENTENCE, TITLE, QUESTION, CANDIDATE = range(5)
"""Types of tokens; GLOBAL is that of global tokens, unless they are of WikiHop's own."""
QUESTION_ABOVE, CANDIDATE_ABOVE, PARAGRAPH_ABOVE = 5, 6, 7
NOTHING = 0
"""The id of global tokens that stand for what is no candidate."""


class Example(NamedTuple):
    """A text ready to be read."""

    ids: IntArray
    types: IntArray
    outline: Outline


def natural_questions(
    question: Tokens,
    chunk: Tokens,
    candidates: Sequence[int],
    *,
    first: int,
    separator: int,
    most: int | None = None,
    words: Words = WORDPIECE,
) -> Example:
    """CLS question SEP chunk SEP, where each token of the chunk is of a candidate, or of none (-1).

    Global tokens: for CLS, each token of the question and its SEP, then for every run of tokens of one
    candidate, or of none. With `most` global tokens, what comes later belongs to the last one. etcmodel's id
    of question tokens is 35 here.

    >>> natural_questions([7, 8], [30, 31, 32], [0, 0, 1], first=101, separator=102).outline.parent.tolist()
    [0, 1, 2, 3, 4, 4, 5, 6]
    """
    if len(candidates) != len(chunk):
        raise bad("candidates", f"one number for each of the {len(chunk)} tokens", len(candidates))
    draft = _Draft()
    draft.add([first], SENTENCE, draft.top(words.first))
    for token in (*question, separator):
        draft.add([token], SENTENCE, draft.top(words.question))
    rows = zip((*chunk, separator), (*candidates, -1), strict=True)
    for candidate, run in groupby(rows, key=lambda row: max(row[1], -1)):
        full = most is not None and len(draft.words) >= most
        parent = len(draft.words) - 1 if full else draft.top(words.sentence if candidate >= 0 else NOTHING)
        draft.add([token for token, _ in run], SENTENCE, parent)
    return draft.example()


def trivia(
    question: Tokens, sentences: Sequence[Tokens], *, first: int, separator: int, words: Words = WORDPIECE
) -> Example:
    """CLS question SEP document: global tokens for CLS, each token of the question, and each sentence.

    The two special tokens belong to the first global token.

    >>> trivia([7, 8], [[30], [31, 32]], first=101, separator=102).outline.parent.tolist()
    [0, 1, 2, 0, 3, 4, 4]
    """
    draft = _Draft()
    whole = draft.top(words.first)
    draft.add([first], SENTENCE, whole)
    for token in question:
        draft.add([token], SENTENCE, draft.top(words.question))
    draft.add([separator], SENTENCE, whole)
    for sentence in sentences:
        draft.add(sentence, SENTENCE, draft.top(words.sentence))
    return draft.example()


def hotpot(
    question: Tokens,
    paragraphs: Sequence[tuple[Tokens, Sequence[Tokens]]],
    *,
    first: int,
    words: Words = WORDPIECE,
) -> Example:
    """CLS question, then each paragraph's title and sentences: paragraphs are segments without an order.

    Global tokens: CLS, which sees everything, one for each token of the question, then for each paragraph its
    own, the title's and each sentence's.

    >>> hotpot([7, 8], [([30], [[31, 32], [33]])], first=101).outline.parent.tolist()
    [-1, 1, 2, 4, 5, 5, 6]
    """
    draft = _Draft()
    draft.top(words.first, free=True)
    draft.add([first], SENTENCE, -1)
    draft.next_segment()
    for token in question:
        draft.add([token], QUESTION, draft.top(words.question))
    for title, sentences in paragraphs:
        draft.next_segment()
        paragraph = draft.top(words.paragraph)
        draft.add(title, TITLE, draft.top(words.sentence), paragraph)
        for sentence in sentences:
            draft.add(sentence, SENTENCE, draft.top(words.sentence), paragraph)
    return draft.example()


def wikihop(
    candidates: Sequence[Tokens],
    query: Tokens,
    documents: Sequence[Sequence[Tokens]],
    *,
    words: Words = WORDPIECE,
) -> Example:
    """Candidates, query, documents of sentences, each a segment; mentions of candidates are linked with them.

    Global tokens: one for each candidate and each token of the query, which see everything, then for each
    document its own and one for each sentence. A mention is a candidate's tokens in a row inside a sentence.

    >>> wikihop([[7], [8]], [5], [[[30, 8], [31]]]).outline.linked.tolist()
    [0, 1, -1, -1, 1, -1]
    """
    draft = _Draft()
    for number, candidate in enumerate(candidates):
        draft.add(candidate, CANDIDATE, draft.top(words.candidate, CANDIDATE_ABOVE, free=True), linked=number)
        draft.next_segment()
    for token in query:
        draft.add([token], QUESTION, draft.top(words.question, QUESTION_ABOVE, free=True))
    for sentences in documents:
        draft.next_segment()
        document = draft.top(words.paragraph, PARAGRAPH_ABOVE)
        for sentence in sentences:
            draft.add(sentence, SENTENCE, draft.top(words.sentence), document)
            for number, candidate in enumerate(candidates):
                draft.link(len(sentence), candidate, number)
    return draft.example()


@dataclass(eq=False)
class _Draft:
    """An example in the making: tokens and global tokens are added in the order of their streams."""

    segment: int = 0
    words: list[tuple[int, int, int, int]] = field(default_factory=list)
    "Of each global token: id, type, segment, whether it is free."
    rows: list[list[int]] = field(default_factory=list)
    "Of each token: id, type, parent, paragraph, linked, segment."

    def top(self, word: int, kind: int = GLOBAL, *, free: bool = False) -> int:
        """A new global token, and its number."""
        self.words.append((word, kind, self.segment, int(free)))
        return len(self.words) - 1

    def add(self, tokens: Tokens, kind: int, parent: int, paragraph: int = -1, *, linked: int = -1) -> None:
        self.rows += [[int(token), kind, parent, paragraph, linked, self.segment] for token in tokens]

    def link(self, last: int, candidate: Tokens, number: int) -> None:
        """Link the candidate's mentions among the last tokens with its global token."""
        start, mention = len(self.rows) - last, list(candidate)
        for at in range(start, len(self.rows) - len(mention) + 1 if mention else start):
            if [row[0] for row in self.rows[at : at + len(mention)]] == mention:
                for row in self.rows[at : at + len(mention)]:
                    row[4] = number

    def next_segment(self) -> None:
        self.segment += 1

    def example(self) -> Example:
        ids, types, parent, paragraph, linked, segment = np.array(self.rows, np.int32).reshape(-1, 6).T
        words, kinds, segments, free = np.array(self.words, np.int32).reshape(-1, 4).T
        outline = Outline(
            words=words,
            parent=parent,
            paragraph=paragraph,
            linked=linked,
            segment=segment,
            types=kinds,
            global_segment=segments,
            global_free=free,
        )
        return Example(ids.astype(np.int64), types.astype(np.int64), outline)
