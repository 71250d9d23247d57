"""Answers: SQuAD's and HotpotQA's measures, those of Natural Questions, and CUAD's clauses."""

import random
from types import SimpleNamespace

import pytest
from transformers.data.metrics.squad_metrics import squad_evaluate

from longspan.errors import InputError
from longspan.metrics.answers import squad, squad2
from longspan.metrics.clauses import cuad
from longspan.metrics.evidence import evidence, hotpot
from longspan.metrics.natural_questions import natural_questions

NAMES = {
    "exact_match": "exact",
    "f1": "f1",
    "has_answer_exact_match": "HasAns_exact",
    "has_answer_f1": "HasAns_f1",
    "no_answer_exact_match": "NoAns_exact",
    "no_answer_f1": "NoAns_f1",
    "best_exact_match": "best_exact",
    "best_f1": "best_f1",
}


@pytest.mark.parametrize("seed", range(20))
def test_squad2_agrees_with_the_scorer_in_transformers(seed: int) -> None:
    pick = random.Random(seed)
    size = pick.randint(1, 12)

    def words(least: int) -> str:
        return " ".join(
            pick.choices(["the", "Rome", "a", "river", "Thames.", "!", "yes"], k=pick.randint(least, 3))
        )

    answers = [words(0) for _ in range(size)]
    right = [[words(1) for _ in range(pick.choice([0, 0, 1, 2]))] for _ in range(size)]
    unsure = [pick.choice([0.1, 0.5, pick.random()]) for _ in range(size)]  # some are equal
    questions = [
        SimpleNamespace(qas_id=i, answers=[{"text": text} for text in texts]) for i, texts in enumerate(right)
    ]
    wanted = squad_evaluate(questions, dict(enumerate(answers)), dict(enumerate(unsure)), 0.4)
    found = squad2(answers, right, unsure, threshold=0.4)
    for name, theirs in NAMES.items():
        assert (name in found) == (theirs in wanted)
        if name in found:
            assert 100 * found[name] == pytest.approx(wanted[theirs]), name
    assert found["best_exact_match_threshold"] == wanted["best_exact_thresh"]
    assert found["best_f1_threshold"] == wanted["best_f1_thresh"]


def test_the_best_threshold_may_be_to_answer_nothing() -> None:
    found = squad2(["Rome", "Paris"], [[], ["Thames"]], [0.2, 0.7])
    assert (found["best_exact_match"], found["best_exact_match_threshold"]) == (0.5, 0.0)


def test_the_best_of_the_right_answers_counts_without_case_articles_and_punctuation() -> None:
    found = squad(["The red, river"], [["Blue river", "a red river bank"]])
    assert found == {"exact_match": 0, "f1": pytest.approx(4 / 5)}
    assert squad(["An answer!"], [["answer"]])["exact_match"] == 1


def test_a_text_in_place_of_a_list_of_answers_is_refused() -> None:
    with pytest.raises(InputError, match=r"`expected\[0\]` must be a list of right answers, but is 'Rome'"):
        squad(["Rome"], ["Rome"])
    with pytest.raises(InputError, match=r"`no_answer\[1\]` must be a finite number, but is nan"):
        squad2(["", ""], [[], []], [0.5, float("nan")])
    with pytest.raises(InputError, match="`no_answer` must be 1 numbers, one for each case, but is 2"):
        squad2([""], [[]], [0.5, 0.5])


def test_yes_and_no_have_no_partial_credit_and_joint_figures_are_products() -> None:
    found = hotpot(
        [("yes it is", {("A", 0), ("B", 1)}), ("no", {("A", 0)}), ("river Thames", {("A", 1), ("A", 2)})],
        [("yes", {("A", 0)}), ("no way", {("A", 0)}), ("the Thames", {("A", 1), ("C", 0)})],
    )
    # answers: 0 for both, since "yes" and "no" are right only alone; then precision 1/2, recall 1
    assert found["f1"] == pytest.approx((0 + 0 + 2 / 3) / 3)
    assert found["facts_exact_match"] == pytest.approx(1 / 3)
    assert found["facts_f1"] == pytest.approx((2 / 3 + 1 + 1 / 2) / 3)
    assert found["joint_precision"] == pytest.approx(1 / 2 * 1 / 2 / 3)
    assert found["joint_recall"] == pytest.approx(1 * 1 / 2 / 3)
    assert found["joint_f1"] == pytest.approx(1 / 3 / 3)
    assert found["joint_exact_match"] == 0


def test_evidence_that_is_missing_and_not_wanted_is_an_exact_match_without_f1() -> None:
    assert evidence([set()], [set()]) == {"exact_match": 1, "f1": 0, "precision": 0, "recall": 0}


def test_a_natural_question_has_an_answer_if_two_people_gave_one() -> None:
    spans = {(3, 5)}
    alone = [{(0, 1)}, {(0, 1)}, set()]
    found = natural_questions([spans, {"yes"}], [0.9, 0.8], [[spans, set(), set()], [{"yes"}, {"no"}, set()]])
    assert (found["precision"], found["recall"]) == (1 / 2, 1)
    assert natural_questions([{(0, 1), (2, 3)}], [1.0], [alone])["f1"] == 0, "a set is right as a whole"
    assert natural_questions([spans], [0.9], [[spans, set(), set()]], agree=1)["f1"] == 1


def test_the_best_threshold_takes_questions_of_one_score_together() -> None:
    right, marked = {1}, [{1}, {1}]
    found = natural_questions([right, {2}, right, {2}], [0.9, 0.5, 0.5, 0.1], [marked] * 4)
    assert (found["precision"], found["recall"], found["threshold"]) == (2 / 3, 1 / 2, 0.5)
    assert [found[f"recall_at_precision_{least}"] for least in (0.5, 0.75, 0.9)] == [0.5, 0.25, 0.25]


def test_questions_that_nobody_answers_are_refused() -> None:
    with pytest.raises(InputError, match="`expected` must be at least one question that 2 annotators answer"):
        natural_questions([{1}], [0.5], [[{1}, set()]])


def test_clauses_come_out_as_cuads_script_has_them() -> None:
    predicted = [
        {"the laws of the State of Delaware": 0.91, "Delaware, U.S.": 0.4, "": 0.9},
        {"thirty (30) days; written notice": 0.55, "sixty days": 0.3},
        {"Acme Corp. and its affiliates, of Ohio": 0.72, "Acme": 0.02},
        {"exclusive": 0.8},
        {"and/or assign": 0.05},
    ]
    expected = [
        ["laws of the State of Delaware", "Delaware"],
        ["thirty (30) days written notice"],
        ["Acme Corp."],
        [],
        ["or assign this Agreement and", "not assign  or"],
    ]
    # computed with evaluate.py of github.com/TheAtticusProject/cuad, branch main
    assert cuad(predicted, expected, [False, False, True, False, False]) == pytest.approx(
        {
            "aupr": 0.6857142857142857,
            "precision_at_80_recall": 0.7142857142857143,
            "precision_at_90_recall": 0,
        }
    )


def test_a_clause_is_found_by_half_of_the_words_and_only_parties_by_what_holds_them() -> None:
    assert cuad([{"a b": 0.5}], [["a b c d"]])["aupr"] == 1
    assert cuad([{"a b": 0.5}], [["a b c d e"]])["aupr"] == 0
    assert cuad([{"a b c d e": 0.5}], [["a b"]])["aupr"] == 0
    assert cuad([{"a b c d e": 0.5}], [["a b"]], [True])["aupr"] == 1
    assert cuad([{"c\nd": 0.5}], [["c d"]])["aupr"] == 0, "words are cut at spaces, as the script does"


def test_clauses_that_cannot_be_counted_are_refused() -> None:
    with pytest.raises(InputError, match=r"`predicted\[0\]\['a'\]` must be from 0 to 1, but is 1.5"):
        cuad([{"a": 1.5}], [["a"]])
    with pytest.raises(InputError, match=r"`expected\[0\]` must be a list of texts that are not empty"):
        cuad([{"a": 0.5}], [[""]])
    with pytest.raises(InputError, match="`expected` must be at least one clause in all"):
        cuad([{"a": 0.5}], [[]])
    with pytest.raises(InputError, match="`parties` must be 1 flags, one for each question, but is 2"):
        cuad([{}], [["a"]], [True, False])
