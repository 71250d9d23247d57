"""Highlights: what is marked is what the word index matches."""

import numpy as np
import pytest

from longspan.search.highlight import SNIPPET, Excerpt, Highlighter
from longspan.search.words import bm25, postings, query_stems, unpack

TEXTS = [
    "The cities were running low on supplies; a cityscape, a runner and a supplier stood by.",
    "His policies: generalization, happiness, relational databases and hopeful adoption.",
    "The Javanese use Java™, not Java, on the Nestlé ﬁle server with cafe\u0301s.",
    "東京 is a city of ties, dies, skies and flying flies; universities agreed to agree.",
]
QUERIES = ["city", "running policies", "supply", "happy relations", "generalize", "java", "Nestle files"]
QUERIES += ["cafés", "京", "tie", "the sky", "fly", "university agreement", "use", "hoped"]


@pytest.mark.parametrize("query", QUERIES)
def test_a_text_is_marked_exactly_if_the_word_index_matches_it(query: str) -> None:
    packed, lengths = postings(TEXTS)
    terms = [unpack([(0, packed[stem])]) for stem in query_stems(query) if stem in packed]
    matching = set(np.flatnonzero(bm25(terms, lengths, len(TEXTS))).tolist())
    highlighter = Highlighter(query, TEXTS)
    assert {i for i, text in enumerate(TEXTS) if any(hot for _, hot in highlighter.parts(text))} == matching


def test_forms_of_a_word_are_marked_whole() -> None:
    text = "The ﬁles of the cafe\u0301s’ policies, East-Policy™ and policy."
    parts = Highlighter("policy file café", [text]).parts(text)
    assert "".join(part for part, _ in parts) == text
    assert [part for part, hot in parts if hot] == ["ﬁles", "cafe\u0301s", "policies", "policy"]


@pytest.mark.parametrize("place", [0, 1, 60, 119])
def test_a_long_passage_is_shown_around_the_answer(place: int) -> None:
    sentences = ["Nothing is said here."] * 120
    sentences[place] = "The Thames flows."
    text = "\n".join(sentences)
    begin = text.index("The Thames")
    shown = Excerpt.of(text, begin, begin + 17).cut()
    assert shown.text[shown.begin : shown.end] == "The Thames flows."
    assert SNIPPET - 20 <= len(shown.text) <= SNIPPET + 4
    assert shown.text.startswith("… ") == (place > 30)
    assert shown.text.endswith(" …") == (place < 90)


@pytest.mark.parametrize("size", [1, 7, 600, 601, 2000])
def test_an_answer_without_blanks_is_cut_all_the_same(size: int) -> None:
    shown = Excerpt.of("文" * size, 0, size).cut()
    assert len(shown.text.rstrip(" …")) == min(size, SNIPPET)
    assert shown.end <= len(shown.text)


def test_white_space_and_what_a_terminal_obeys_do_not_move_the_answer() -> None:
    text = "  One\x1b[2J.\n\n Two\t words\x00 here. \n"
    shown = Excerpt.of(text, text.index("Two"), len(text))
    assert shown.text == "One�[2J. Two words� here."
    assert shown.text[shown.begin : shown.end] == "Two words� here."


def test_lines_break_between_words_and_inside_long_ones() -> None:
    text = "a river flows " * 3 + "x" * 25
    lines = [text[begin:end] for begin, end in Excerpt(text, 0, 0).lines(10)]
    assert " ".join(lines).replace("xx xx", "xxxx") == text
    assert all(0 < len(line) <= 10 for line in lines)
    parts = list(Excerpt("one two three", 4, 7).pieces([(4, 7), (8, 13)], (2, 10)))
    assert parts == [("e ", False, False), ("two", True, True), (" ", False, False), ("th", True, False)]
