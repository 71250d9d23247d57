"""The words of a query match other spellings: British, plural, hyphens, and one slip of the keyboard."""

from pathlib import Path

import pytest

from longspan.search.index import Index
from longspan.search.spelling import SHORTEST, across_the_ocean, slips
from longspan.search.terms import query_terms, term_of
from longspan.search.words import stems
from unit.search.folders import by_words

SAID = (
    "The color of the harbour is gray.",
    "They organise a theatre and analyze the catalogue.",
    "The licence was cancelled; the labor was paid.",
    "Send an email to the co-operative by the web site.",
    "The agreement covers policies and children.",
)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    files = {f"{number}.txt": sentence for number, sentence in enumerate(SAID)}
    return by_words(tmp_path_factory.mktemp("terms"), files)


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("colours", 0),
        ("harbor", 0),
        ("organize", 1),
        ("organizing", 1),
        ("theaters", 1),
        ("analysing", 1),
        ("catalogs", 1),
        ("license", 2),
        ("canceled", 2),
        ("labour", 2),
        ("e-mail", 3),
        ("e mails", 3),
        ("website", 3),
        ("cooperative", 3),
        ("agreements", 4),
        ("policy", 4),
        ("aggreement", 4),
        ("agrement", 4),
        ("agreemnet", 4),
        ("agreemeht", 4),
        ("polcies", 4),
    ],
)
def test_a_word_is_found_in_another_spelling(index: Index, query: str, number: int) -> None:
    assert [hit.file.name for hit in index.search(query, mode="bm25")] == [f"{number}.txt"]


@pytest.mark.parametrize("query", ["giraffe", "agrmnt", "lab", "clr", "sitefoo"])
def test_words_that_are_too_different_are_not_found(index: Index, query: str) -> None:
    assert len(index.search(query, mode="bm25")) == 0


def test_halves_of_a_word_match_side_by_side_and_numbers_have_none(tmp_path: Path) -> None:
    files = {"0.txt": "A land lord came.", "1.txt": "The lord of the land.", "2.txt": "In 1984 or 2021."}
    index = by_words(tmp_path, files)
    assert [hit.file.name for hit in index.search("landlord", mode="bm25")] == ["0.txt"]
    assert len(index.search("19842021", mode="bm25")) == 0


def test_a_token_belongs_to_the_word_in_which_it_begins() -> None:
    terms = query_terms("is the Thames a river?", lambda stems: set(stems))
    offsets = [(0, 2), (3, 6), (7, 10), (10, 13), (16, 21), (21, 22)]
    assert term_of(terms, offsets).tolist() == [-1, -1, 0, 0, 1, -1]
    assert term_of([], offsets).tolist() == [-1] * 6
    assert len(term_of(terms, ())) == 0


def test_a_word_that_occurs_is_not_taken_for_a_slip_of_another() -> None:
    known = {*stems(["form", "from", "firm"]).values()}
    (term,) = query_terms("form", lambda terms: known & {*terms})
    assert term.stems == ("form",)
    (term,) = query_terms("forn", lambda terms: known & {*terms})
    assert term.stems == ("forn", "form")


def test_a_repeated_word_counts_once_and_stop_words_only_alone() -> None:
    terms = query_terms("the River and rivers of it", lambda terms: {*terms})
    assert [(term.start, term.end, term.stems[0]) for term in terms] == [(4, 9, "river")]
    assert [term.stems[0] for term in query_terms("to be", lambda terms: {*terms})] == ["to", "be"]


@pytest.mark.parametrize("pair", ["centre center", "honour honor", "realise realize", "defence defense"])
def test_spellings_lead_both_ways(pair: str) -> None:
    british, american = pair.split()
    assert american in across_the_ocean(british)
    assert british in across_the_ocean(american)


def test_all_words_at_distance_one_are_tried_and_no_others() -> None:
    word = "fees"
    tried = set(slips(word))
    letters = "abcdefghijklmnopqrstuvwxyz"
    for i in range(len(word) + 1):
        assert all(word[:i] + letter + word[i:] in tried for letter in letters)
    assert {"fes", "ees", "fee", "efes", "fese", "lees", "feed"} <= tried
    assert all(abs(len(other) - len(word)) <= 1 for other in tried)
    assert not list(slips("f" * (SHORTEST - 1)))
    assert not list(slips("rfc9110"))
