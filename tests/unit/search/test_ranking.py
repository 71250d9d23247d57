"""Ranking by words alone: the passage that answers, not one of names; and knowing that none does."""

from pathlib import Path

import numpy as np
import pytest

from longspan.search.fusion import FEATURES, likelihood
from longspan.search.index import Index
from longspan.search.rank import _likelihood, best
from unit.search.folders import by_words

NAMES = ("Acme Widgets", "Borealis Foods", "Cobalt Mining", "Delphi Airlines", "Ember Energy", "Fjord Marine")
CLAUSES = (
    "The agreement may be terminated by either side with {n} days of notice in writing. "
    "Such notice takes effect on the day after it has been received by the other side.",
    "All fees are payable within {m} days of the invoice. Amounts that are overdue bear interest at the rate "
    "that is published by the central bank, and the debtor bears the cost of collection.",
    "Each side keeps the confidential information of the other secret for {k} years and uses it for no other "
    "purpose than the one that is stated in this document.",
    "Disputes are settled by arbitration in the city of Geneva. The language of the arbitration is English, "
    "and the decision of the tribunal is final and binds both sides.",
    "Neither side is liable for damage that is caused by events beyond its control, such as storms, strikes, "
    "war, or the failure of public networks, as long as these events last.",
)


def contract(name: str, number: int) -> str:
    """A title page that repeats names, clauses that do not, and signatures that do."""
    head = f"{name.upper()} INC.\n\nMASTER SUPPLY AGREEMENT\n\nbetween {name} Inc. and Globex Corp.\n\n"
    head += f"{name} Inc., 1 Main Street\n{name} Inc., Attention: Legal\nGlobex Corp., 2 High Street\n" * 5
    clauses = [clause.format(n=30 + number, m=10 + number, k=2 + number) for clause in CLAUSES]
    body = "\n\n".join(f"{i}. {clause} {_filler(i)}" for i, clause in enumerate(clauses, 1))
    tail = f"\n\nSigned for {name} Inc.\n\nBy: ____________\nName: ____________\n{name} Inc.\n" * 5
    return f"{head}\n{body}{tail}"


def _filler(number: int) -> str:
    words = ("schedule", "delivery", "warehouse", "inspection", "inventory", "carrier", "packaging", "pallet")
    pairs = [(words[(number + i) % 8], words[(number * 3 + i * 5 + 1) % 8]) for i in range(5)]
    return " ".join(f"The {a} follows the {b} as agreed in part {i}." for i, (a, b) in enumerate(pairs))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    files = {f"{name.split()[0].lower()}.txt": contract(name, i) for i, name in enumerate(NAMES)}
    return by_words(tmp_path_factory.mktemp("ranking"), files)


@pytest.mark.parametrize("number", range(len(NAMES)))
@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How many days of notice are needed to terminate the {name} Inc. agreement?", "{n} days of notice"),
        ("When are fees payable under the {name} contract?", "within {m} days of the invoice"),
    ],
)
def test_a_question_that_repeats_names_is_answered_by_a_passage_of_that_document(
    index: Index, number: int, question: str, words: str
) -> None:
    name = NAMES[number]
    hits = index.search(question.format(name=name), top=3)
    assert hits[0].file.name == f"{name.split()[0].lower()}.txt"
    assert words.format(n=30 + number, m=10 + number) in hits[0].text
    assert hits[0].start > 0


def test_the_title_page_would_win_by_names_if_words_were_all(index: Index) -> None:
    """What the test before this one guards against: the words of the names fit the first lines best."""
    hit = index.search("Acme Widgets Inc. Globex Corp. agreement", top=1, mode="bm25")[0]
    assert hit.start == 0


@pytest.mark.parametrize(
    "question",
    [
        "Which zebra ate the purple xylophone?",
        "How tall was Napoleon when the volcano erupted?",
        "quantum chromodynamics lattice",
    ],
)
def test_a_question_that_nothing_answers_is_said_to_have_no_answer(index: Index, question: str) -> None:
    hits = index.search(question)
    assert not hits.answered
    certain = index.search("How many days of notice are needed to terminate the Acme Widgets Inc. agreement?")
    assert certain.answered
    assert sum(hit.score for hit in hits) < sum(hit.score for hit in certain)


def test_hits_below_the_least_score_are_left_out(index: Index) -> None:
    question = "How many days of notice are needed to terminate the Acme Widgets agreement?"
    hits = index.search(question, top=9)
    least = hits[3].score
    kept = index.search(question, top=9, min_score=least)
    assert [hit.score for hit in kept] == [hit.score for hit in hits if hit.score >= least]
    assert 0 < len(kept) < len(hits)
    none = index.search(question, min_score=2.0)
    assert (len(none), none.answered) == (0, False)


def test_documents_are_ranked_by_what_is_said_of_them(index: Index) -> None:
    hits = index.search("Delphi Airlines notice", by="document")
    assert hits[0].file.name == "delphi.txt"
    assert len({hit.file for hit in hits}) == len(hits)


def test_the_best_of_many_are_the_largest_in_order() -> None:
    draw = np.random.default_rng(1)
    rows, scores = np.arange(5, 502), draw.integers(0, 50, 497).astype(float)
    for count in (1, 7, 497, 600):
        expected = sorted(
            zip(rows.tolist(), scores.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0])
        )
        assert [*best(rows, scores, count).items()] == expected[:count]


def test_documents_are_as_likely_as_an_answer_is(index: Index) -> None:
    assert index.search(
        "How many days of notice has the Acme Widgets Inc. agreement?", by="document"
    ).answered
    assert not index.search("Which zebra ate the purple xylophone?", by="document").answered
    hits = index.search("Acme Widgets Inc. and Globex Corp. master supply agreement", top=99, by="document")
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert 0 < sum(hit.score for hit in hits) <= 1
    assert len(index.search("notice", by="document", mode="dense")) == 0  # no model has read them


def test_a_passage_of_nothing_but_white_space_is_no_hit(tmp_path: Path) -> None:
    index = by_words(tmp_path, {"a.txt": f"Alpha beta.{' ' * 5000}Gamma delta."})
    hits = index.search("gamma", top=9)
    assert hits[0].text == "Gamma delta."
    assert all(hit.text for hit in hits)


@pytest.mark.parametrize("query", ["\u200b", "\0", "\u0301", "!?"])
def test_a_query_without_words_has_no_hits(index: Index, query: str) -> None:
    for mode in ("hybrid", "dense", "bm25"):
        hits = index.search(query, mode=mode)
        assert (len(hits), hits.answered) == (0, False)


def test_words_share_what_is_likely_between_what_is_read_and_what_is_not() -> None:
    """A passage that no model has read does not rise because others have been."""
    draw = np.random.default_rng(4)
    features = {name: draw.random(8) for name in (*FEATURES, "document_covered", "missing", "missing_name")}
    words, _ = likelihood(features, "words")
    read = np.arange(8) < 5
    likely, confidence = _likelihood(features, read, "tokens")
    assert likely.sum() == pytest.approx(confidence)
    np.testing.assert_allclose(likely[~read], words[~read])
    alone, _ = likelihood({name: column[read] for name, column in features.items()}, "tokens")
    np.testing.assert_allclose(likely[read] / likely[read].sum(), alone / alone.sum())
