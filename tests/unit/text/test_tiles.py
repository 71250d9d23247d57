"""Tiles: passages of an index are the whole text, of a size to read, cut where people would cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.text.passages import _LINES, _SENTENCES, LONGEST, _Ends, tile

TEXTS = st.text(max_size=400) | st.text("ab .!?\n\t\f。…#\u2028é", max_size=900)


def pieces(text: str, starts: list[int]) -> list[str]:
    return [text[a:b] for a, b in pairwise([*starts, len(text)])] if starts else []


@given(TEXTS, st.integers(5, 60), st.lists(st.integers(0, 900), max_size=9))
def test_passages_joined_are_the_text_and_none_is_too_long(text: str, most: int, headings: list[int]) -> None:
    starts = tile(text, (place for place in sorted(headings) if place <= len(text)), most)
    parts = pieces(text, starts)
    if not text.strip():
        assert parts == []
        return
    assert "".join(parts) == text
    assert starts[0] == 0
    assert all(parts)
    assert all(len(part) <= most for part in [*parts[:-1], parts[-1].rstrip()])
    if len(parts) > 1:
        assert all(len(part) >= most * 2 // 5 for part in [*parts[:-1], parts[-1].rstrip()])


@pytest.mark.parametrize("size", [LONGEST - 1, LONGEST, LONGEST + 1, 5 * LONGEST])
def test_a_word_without_end_is_cut_all_the_same(size: int) -> None:
    parts = pieces("a" * size, tile("a" * size))
    assert len(parts) == 1 if size <= LONGEST else len(parts) > 1
    assert max(map(len, parts)) <= LONGEST


def test_a_heading_in_reach_begins_a_passage() -> None:
    sentence = "Nothing much is said in this sentence. "
    text = sentence * 9 + "Fees\n" + sentence * 20
    place = text.index("Fees")
    assert place not in tile(text)
    assert place in tile(text, [place])


def test_cuts_stand_between_paragraphs_then_sentences_then_words() -> None:
    sentence = "Nothing much is said in this sentence. "
    paragraphs = (sentence * 10).strip() + "\n\n"
    assert all(part.endswith("\n\n") for part in pieces(paragraphs * 9, tile(paragraphs * 9)))
    assert all(part.endswith(". ") for part in pieces(sentence * 90, tile(sentence * 90)))
    words = "word " * 900
    assert all(part.endswith(" ") for part in pieces(words, tile(words)))


@given(st.text("a.\"'\n \u2028。！", max_size=300), st.integers(0, 300), st.integers(0, 99))
def test_sentences_sought_between_two_places_end_where_those_of_the_whole_text_do(
    text: str, low: int, size: int
) -> None:
    sought = _Ends(text, _SENTENCES + _LINES)
    ends = [place for place in sought._all if low <= place <= low + size]
    assert sorted(set(sought.between(low, low + size))) == ends


def test_a_passage_of_wrapped_lines_ends_with_a_sentence() -> None:
    sentence = "The road went on and on over hills and rivers\nand through the towns that lay between them. "
    wrapped = sentence * 30
    assert all(piece.endswith("them. ") for piece in pieces(wrapped, tile(wrapped))[:-1])
    listed = "Apples from the garden\nPears from the market in the old town\n" * 40
    assert all(piece.endswith("\n") for piece in pieces(listed, tile(listed))[:-1])
