"""Fusion: likelihoods add up, larger scores are likelier, and what a passage looks like is told."""

import numpy as np
import pytest

from longspan.search import fusion
from longspan.shapes import FloatArray

DRAW = np.random.default_rng(3)


def features(count: int) -> dict[str, FloatArray]:
    names = {name for kind in fusion.WEIGHTS for name in fusion.WEIGHTS[kind]}
    names |= {name for kind in fusion.CONFIDENCE for name in fusion.CONFIDENCE[kind]}
    return {name: DRAW.random(count) for name in sorted(names)}


@pytest.mark.parametrize("kind", fusion.WEIGHTS)
@pytest.mark.parametrize("count", [1, 2, 97])
def test_likelihoods_sum_up_to_the_confidence_and_grow_with_the_score(kind: str, count: int) -> None:
    known = features(count)
    likely, confidence = fusion.likelihood(known, kind)
    assert 0 < confidence < 1
    assert likely.sum() == pytest.approx(confidence)
    order = np.argsort(fusion.score(known, kind))
    assert (np.diff(likely[order]) >= 0).all()
    assert (likely >= 0).all()


@pytest.mark.parametrize("kind", fusion.WEIGHTS)
def test_very_different_scores_are_no_overflow(kind: str) -> None:
    known = {name: column * 20 for name, column in features(5).items()}
    likely, confidence = fusion.likelihood(known, kind)
    assert np.isfinite(likely).all()
    assert 0 <= confidence <= 1


def test_the_look_of_a_passage() -> None:
    texts = ["EXHIBIT A", "The fee is 12 dollars.", "It is due."]
    found = fusion.shapes("How much is the fee?", texts, np.array([0.0, 0.3, 0.6]))
    assert set(found) == set(fusion.SHAPE)
    assert found["first"].tolist() == [1, 0, 0]
    assert found["upper"].argmax() == found["capitalized"].argmax() == 0
    assert found["digits"].argmax() == 1
    assert (found["number"][1] > found["number"][2]).all()
    assert not fusion.shapes("Why?", texts, np.zeros(3))["number"].any()


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("How long may it take?", "Thirty days.", 0.5),
        ("WHEN is it due?", "On the first of May 2024.", 0.5),
        ("When is it due?", "Soon.", -0.5),
        ("Who pays?", "12 people.", 0.0),
        ("whenever you like", "12", 0.0),
    ],
)
def test_a_question_for_a_number_wants_one(query: str, text: str, expected: float) -> None:
    assert fusion.wants(query, text) == expected
