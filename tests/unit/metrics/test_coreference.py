"""Coreference measures against the CoNLL scorer's own test cases, and the assignment against scipy's."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from longspan.errors import InputError
from longspan.metrics.assignment import assign
from longspan.metrics.coreference import Clusters, coreference, counts, figures, without_singletons


def clusters(text: str) -> Clusters:
    """Clusters of one-letter mentions: "ab c" is {a, b} and {c}."""
    return [set(word) for word in text.split()]


# Key, response, and "measure: recall precision" as tests/TestCases.README of the reference scorer gives them
# (in its Python port, github.com/ns-moosavi/coval, commit 87071a6).
CASES = [
    ("a bc def", "a bc def", "muc: 1 1, b_cubed: 1 1, ceaf_e: 1 1, lea: 1 1"),
    ("a bc def", "a de", "muc: 1/3 1, b_cubed: 7/18 1, ceaf_e: 3/5 9/10, lea: 1/3 1"),
    ("a bc def", "a bcx defy z", "muc: 1 3/5, b_cubed: 1 55/108, lea: 1 4/9"),
    ("a bc def", "a bcx dy z", "muc: 1/3 1/3, b_cubed: 5/9 17/42, ceaf_e: 11/15 11/20, lea: 1/2 2/7"),
    ("a bc def", "a bcxB dy z", "muc: 1/3 1/4, b_cubed: 5/9 5/16, ceaf_e: 31/45 31/60"),
    ("a bc def", "a bcx dy Bz", "muc: 1/3 1/4, b_cubed: 5/9 17/48, ceaf_e: 11/15 11/20, lea: 1/2 1/4"),
    ("a bc def", "a b c d e f", "muc: 0 0, b_cubed: 1/2 1, lea: 1/6 1/6"),
    ("a bc def", "abcdef", "muc: 1 3/5, b_cubed: 1 7/18, lea: 5/6 4/15"),
    ("a bc def", "a x y c d e z", "muc: 0 0, b_cubed: 13/36 4/7, lea: 1/6 1/7"),
    ("a bc def", "axycdez", "muc: 1/3 1/6, b_cubed: 17/36 6/49, lea: 1/6 1/21"),
    ("ab cde fg", "bcx de fg", "lea: 3/7 4/7"),
    ("12345 67 89ABC", "12345 6789ABC", "muc: 1 9/10, b_cubed: 1 16/21, lea: 1 13/18"),
    ("12345 67 89ABC", "1234589ABC 67", "muc: 1 9/10, b_cubed: 1 7/12, lea: 1 29/54"),
    ("ABCD", "AB CD", "muc: 2/3 1, lea: 1/3 1"),
    ("AB CD", "ABCD", "muc: 1 2/3, lea: 1 1/3"),
    ("ABC", "AC", "muc: 1/2 1, lea: 1/3 1"),
    ("BCDEGHJ", "ABC DEF GHI", "muc: 1/2 1/2, lea: 1/7 1/3"),
    ("ABC DEFG", "AB CD FGH", "muc: 2/5 1/2, lea: 5/21 3/7"),
    ("abcdef", "abcxyz", "lea: 1/5 1/5"),
    ("a b c d e f", "a b c d e f", "muc: 0 0, b_cubed: 1 1, ceaf_e: 1 1, lea: 1 1"),
    ("a b c d e f", "a b c x y z", "muc: 0 0, lea: 1/2 1/2"),
    ("a b c d e f", "ab cxy z", "lea: 0 0"),
]


@pytest.mark.parametrize(("key", "response", "wanted"), CASES)
def test_the_reference_scorers_cases_come_out_as_it_says(key: str, response: str, wanted: str) -> None:
    found = coreference([clusters(response)], [clusters(key)])
    for case in wanted.split(", "):
        name, _, values = case.partition(": ")
        recall, precision = (float(Fraction(value)) for value in values.split())
        assert found[f"{name}_recall"] == pytest.approx(recall), name
        assert found[f"{name}_precision"] == pytest.approx(precision), name
        harmonic = 2 * recall * precision / (recall + precision) if recall else 0
        assert found[f"{name}_f1"] == pytest.approx(harmonic), name


def test_documents_are_summed_before_they_are_divided() -> None:
    found = coreference([clusters("ab"), clusters("cde f")], [clusters("abg"), clusters("cd ef")])
    assert found["muc_recall"] == 2 / 4  # 1 of 2 links, 1 of 2
    assert found["muc_precision"] == 2 / 3
    # what coval's evaluate_documents gives
    assert found["b_cubed_f1"] == pytest.approx(0.6893939393939393)
    assert found["ceaf_e_f1"] == pytest.approx(0.7555555555555555)
    assert found["lea_f1"] == pytest.approx(0.4615384615384615)
    parts = [found[f"{name}_f1"] for name in ("muc", "b_cubed", "ceaf_e")]
    assert found["conll_f1"] == pytest.approx(sum(parts) / 3)


def test_mentions_are_found_or_not_whatever_their_cluster() -> None:
    found = coreference([clusters("ab cx")], [clusters("abc d")])
    assert (found["mentions_precision"], found["mentions_recall"]) == (3 / 4, 3 / 4)


def test_the_figures_of_counts_are_those_of_the_documents() -> None:
    documents = [(clusters("ab c"), clusters("abc")), (clusters("xy"), clusters("xyz w"))]
    whole = coreference([ours for ours, _ in documents], [theirs for _, theirs in documents])
    assert figures([counts(*document) for document in documents]) == whole


def test_clusters_of_one_mention_cost_precision_unless_they_are_left_out() -> None:
    key, response = clusters("ab"), clusters("ab c")
    assert coreference([response], [key])["b_cubed_precision"] == 2 / 3
    assert coreference([without_singletons(response)], [key])["b_cubed_precision"] == 1


def test_no_clusters_score_nothing() -> None:
    assert coreference([[]], [clusters("ab")])["conll_f1"] == 0
    assert coreference([[]], [[]])["lea_f1"] == 0


def test_what_are_no_clusters_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"`predicted\[0\]` must be a set of at least one mention, but is set"
    ):
        coreference([[set()]], [clusters("ab")])
    with pytest.raises(InputError, match="`expected` must be clusters that share no mention, but is 'a'"):
        coreference([clusters("ab")], [clusters("ab ac")])
    with pytest.raises(InputError, match="`predicted` must be 2 results, as many as `expected`, but is 1"):
        coreference([[]], [[], []])


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (5, 5), (6, 11), (13, 8)])
def test_the_assignment_is_as_good_as_scipys(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape[0])
    for scores in (rng.random(shape), rng.integers(0, 3, shape).astype(float)):
        rows, columns = linear_sum_assignment(scores, maximize=True)
        assert assign(scores) == pytest.approx(scores[rows, columns].sum())
