"""The answering sentence: which it is, and that sentences are what people call so."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.search.answer import SHORTEST, sentences
from longspan.search.index import Index
from unit.search.folders import by_words

PASSAGE = """The parties met in Geneva on a rainy day. The rent of the house is 900 dollars a month. \
The owner, Mr. Anton B. Miller, lives in Rome. Nobody may keep a giraffe in the garden; \
dogs are welcome at all times."""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    return by_words(tmp_path_factory.mktemp("answer"), {"lease.txt": PASSAGE})


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Where did the parties meet?", "The parties met in Geneva on a rainy day."),
        ("How much is the rent?", "The rent of the house is 900 dollars a month."),
        ("Where does the owner live?", "The owner, Mr. Anton B. Miller, lives in Rome."),
        ("Who may keep a giraffe?", "Nobody may keep a giraffe in the garden;"),
        ("Are dogs welcome?", "dogs are welcome at all times."),
    ],
)
def test_the_sentence_that_says_what_is_asked_is_the_answer(index: Index, question: str, answer: str) -> None:
    assert index.search(question)[0].answer == answer


def test_an_answer_begins_behind_a_short_heading(tmp_path: Path) -> None:
    text = "# Visitors\n\nVisitors sign in at the gate before noon.\n\n# Dogs\n\nAll of them may stay."
    hits = by_words(tmp_path, {"rules.md": text}).search("Where do visitors sign in?")
    assert hits[0].answer == "Visitors sign in at the gate before noon."


def test_a_heading_is_not_the_answer(tmp_path: Path) -> None:
    text = "1. Rent of the house\n\nIt is 900 dollars a month, due on the first.\n\n2. Dogs\n\nAll may stay."
    hits = by_words(tmp_path, {"lease.txt": text}).search("What is the rent of the house?")
    assert hits[0].answer == "It is 900 dollars a month, due on the first."


@given(st.text(max_size=200) | st.text("ab. !?\n…。;\"')1", max_size=200))
def test_sentences_lie_in_order_hold_all_words_and_have_no_space_around_them(text: str) -> None:
    spans = sentences(text)
    here = 0
    for start, end in spans:
        assert not text[here:start].strip()
        assert text[start:end] == text[start:end].strip()
        here = end
    assert not text[here:].strip()


def test_a_sentence_is_not_shorter_than_one_can_be() -> None:
    text = "No. 7 of p. 3 ff. says: A. B. Smith is here. And here is the rest of it all."
    spans = sentences(text)
    assert [text[a:b] for a, b in spans] == [text[:44], text[45:]]
    assert all(end - start >= SHORTEST for start, end in spans)
