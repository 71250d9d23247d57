"""Labels, numbers, rankings and confidence against scikit-learn and scipy."""

import random
from collections.abc import Callable

import numpy as np
import pytest
import sklearn.metrics as peer
from scipy.optimize import minimize_scalar
from scipy.stats import pearsonr, spearmanr

from longspan.errors import InputError
from longspan.metrics.calibration import brier, calibration_error, fit_temperature, likelihood_loss
from longspan.metrics.classification import accuracy, by_label, label_f1, matthews, set_f1
from longspan.metrics.ranking import ranking, scored
from longspan.metrics.regression import pearson, spearman


@pytest.mark.parametrize("seed", range(5))
def test_labels_are_scored_as_by_scikit_learn(seed: int) -> None:
    pick = random.Random(seed)
    ours, theirs = pick.choices("abcd", k=37), pick.choices("abcd", k=37)
    found = label_f1(ours, theirs)
    assert found["macro_f1"] == pytest.approx(peer.f1_score(theirs, ours, average="macro"))
    assert found["micro_f1"] == pytest.approx(peer.f1_score(theirs, ours, average="micro"))
    assert found["micro_f1"] == accuracy(ours, theirs)["accuracy"]
    assert matthews(ours, theirs)["matthews"] == pytest.approx(peer.matthews_corrcoef(theirs, ours))
    each = peer.precision_recall_fscore_support(theirs, ours, labels=list("abcd"))
    for i, one in enumerate(by_label(ours, theirs).values()):
        assert [*one.values()] == pytest.approx([column[i] for column in each[:3]])


@pytest.mark.parametrize("seed", range(5))
def test_sets_are_texts_with_several_labels(seed: int) -> None:
    tables = np.random.default_rng(seed).integers(0, 2, (2, 17, 3))
    ours, theirs = ([{i for i in range(3) if row[i]} for row in table] for table in tables)
    found = label_f1(ours, theirs, labels=[0, 1, 2])
    assert found["macro_f1"] == pytest.approx(peer.f1_score(tables[1], tables[0], average="macro"))
    assert found["micro_f1"] == pytest.approx(peer.f1_score(tables[1], tables[0], average="micro"))
    assert accuracy(ours, theirs)["accuracy"] == pytest.approx(peer.accuracy_score(tables[1], tables[0]))


def test_a_label_that_never_occurs_counts_in_the_macro_mean_if_it_is_listed() -> None:
    assert label_f1(["a"], ["a"])["macro_f1"] == 1
    assert label_f1(["a"], ["a"], labels=["a", "b"])["macro_f1"] == 0.5


def test_labels_that_cannot_be_scored_are_refused() -> None:
    with pytest.raises(InputError, match="`predicted` must be one of no, yes, but is 'maybe'"):
        by_label(["maybe"], ["no"], labels=["no", "yes"])
    with pytest.raises(InputError, match="`predicted` must be 2 results, as many as `expected`, but is 1"):
        accuracy(["a"], ["a", "b"])
    for measure in (accuracy, label_f1, matthews, set_f1):
        with pytest.raises(InputError, match="`expected` must be at least one right result"):
            measure([], [])


def test_labelings_that_say_nothing_of_each_other_correlate_by_0() -> None:
    assert matthews(["a", "a"], ["a", "b"])["matthews"] == 0


@pytest.mark.parametrize(("ours", "theirs"), [(pearson, pearsonr), (spearman, spearmanr)])
def test_correlations_are_scipys(
    ours: Callable[..., dict[str, float]], theirs: Callable[..., tuple[float, float]]
) -> None:
    a, b = np.random.default_rng(0).integers(0, 5, (2, 23)).astype(float)  # with ties
    assert [*ours(a, b).values()] == pytest.approx([theirs(a, b)[0]])
    assert np.isnan([*ours([1, 1], [1, 2]).values()])
    with pytest.raises(InputError, match=r"`predicted\[1\]` must be a finite number, but is nan"):
        ours([1.0, float("nan")], [1, 2])


def test_a_ranking_is_judged_by_where_relevant_results_stand() -> None:
    found = ranking([["x", "a", "b"], ["c"], ["x"]], [{"a", "b", "z"}, {"c"}, {"d"}], at=[1, 2])
    assert found["map"] == pytest.approx(((1 / 2 + 2 / 3) / 3 + 1 + 0) / 3)
    assert found["mrr"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert found["precision_at_1"] == pytest.approx(1 / 3)
    assert found["precision_at_2"] == pytest.approx((1 / 2 + 1 / 2) / 3)
    assert found["recall_at_2"] == pytest.approx((1 / 3 + 1) / 3)
    assert ranking([[]], [{"a"}])["map"] == 0


def test_rankings_that_cannot_be_judged_are_refused() -> None:
    with pytest.raises(InputError, match=r"`expected\[0\]` must be a set of at least one relevant result"):
        ranking([["a"]], [set()])
    with pytest.raises(InputError, match=r"`predicted\[0\]` must be a list without repetitions"):
        ranking([["a", "a"]], [{"a"}])
    with pytest.raises(InputError, match=r"`expected\[0\]` must be a list with at least one right candidate"):
        scored([[0.5]], [[False]])


@pytest.mark.parametrize("seed", range(5))
def test_scored_candidates_have_scikit_learns_average_precision(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, right = rng.integers(0, 9, 31) / 9, rng.random(31) < 0.4
    found = scored([scores.tolist()], [right.tolist()])
    assert found["map"] == pytest.approx(peer.average_precision_score(right, scores))
    # ContractNLI's: the highest threshold that gives the recall, and the precision there
    for share in (80, 90):
        enough = [t for t in scores if (scores[right] >= t).mean() >= share / 100]
        assert found[f"precision_at_{share}_recall"] == pytest.approx(right[scores >= max(enough)].mean())


def test_calibration_is_the_distance_of_confidence_and_accuracy() -> None:
    sure, right = [0.95, 0.85, 0.85, 0.3, 0.0], [True, True, False, False, False]
    # in tenths: 0.05 of one, |0.85 - 0.5| of two, 0.3 of one, 0 of one
    assert calibration_error(sure, right, bins=10)["calibration_error"] == pytest.approx(
        (0.05 + 0.7 + 0.3) / 5
    )
    assert brier(sure, right)["brier"] == pytest.approx(peer.brier_score_loss(right, sure))
    with pytest.raises(InputError, match=r"`confidence` must be probabilities from 0 to 1, but is 1\.5"):
        brier([0.5, 1.5], [True, True])


@pytest.mark.parametrize("seed", range(3))
def test_no_other_temperature_has_a_smaller_loss(seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 5, (61, 3))
    labels = np.where(rng.random(61) < 0.7, logits.argmax(axis=1), rng.integers(0, 3, 61)).tolist()
    best = minimize_scalar(lambda t: likelihood_loss(logits, labels, np.exp(t)), (0, 1))
    assert fit_temperature(logits, labels) == pytest.approx(np.exp(best.x), rel=1e-5)
    assert likelihood_loss(logits, labels) == pytest.approx(
        peer.log_loss(labels, np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), labels=[0, 1, 2])
    )


def test_a_temperature_stays_within_its_range_if_everything_is_right() -> None:
    assert fit_temperature([[2.0, 0.0]], [0]) == pytest.approx(0.01)


def test_logits_and_labels_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="`labels` must be from 0 to 1, but is 2"):
        fit_temperature([[0.0, 1.0]], [2])
    with pytest.raises(InputError, match="`labels` must be 1 whole numbers, one for each row of logits"):
        fit_temperature([[0.0, 1.0]], [0, 1])
    with pytest.raises(InputError, match="`logits` must be rows of finite numbers, one for each label"):
        likelihood_loss([[float("nan"), 1.0]], [0])
    with pytest.raises(InputError, match="`temperature` must be above 0, but is 0"):
        likelihood_loss([[0.0, 1.0]], [0], temperature=0)
