"""Answers in words: SQuAD 1.1 and SQuAD 2.0, where a question may have no answer."""

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np

from longspan.errors import bad
from longspan.metrics.checks import numbers, pairs
from longspan.shapes import BoolArray, FloatArray


def squad(predicted: Sequence[str], expected: Sequence[Sequence[str]]) -> dict[str, float]:
    """Exact match and F1 of words, against the best of the right answers (Rajpurkar et al. 2016).

    >>> squad(["the Thames"], [["Thames", "river Thames"]])
    {'exact_match': 1.0, 'f1': 1.0}
    """
    exact, overlap = _scores(predicted, _lists(expected))
    return {"exact_match": float(exact.mean()), "f1": float(overlap.mean())}


def squad2(
    predicted: Sequence[str],
    expected: Sequence[Sequence[str]],
    no_answer: Sequence[float] | None = None,
    threshold: float = 1.0,
) -> dict[str, float]:
    """Exact match and F1 where "" and an empty list mean no answer (Rajpurkar, Jia and Liang 2018).

    `no_answer` is how surely each question has none; above `threshold` its answer counts as "". The names
    `has_answer_*` and `no_answer_*` are over those questions only; `best_*` is for the best threshold.

    >>> found = squad2(["Thames", "Rome"], [["Thames"], []], no_answer=[0.1, 0.9])
    >>> found["exact_match"], found["best_exact_match"], found["best_exact_match_threshold"]
    (0.5, 1.0, 0.1)
    """
    lists = _lists(expected)
    # Answers of articles and punctuation only are no answers to compare with, but the question has one.
    comparable = [[text for text in right if words(text)] for right in lists]
    raw = dict(zip(("exact_match", "f1"), _scores(predicted, comparable), strict=True))
    answered = np.array([bool(right) for right in lists])
    if no_answer is None:
        return _split(raw, answered)
    unsure = numbers("no_answer", no_answer, len(answered))
    said = np.array([bool(answer) for answer in predicted])
    kept = {name: np.where(unsure > threshold, ~answered, scores) for name, scores in raw.items()}
    figures = _split(kept, answered)
    for name, scores in raw.items():
        best, at = _best_threshold(scores, said, answered, unsure)
        figures |= {f"best_{name}": best, f"best_{name}_threshold": at}
    return figures


def words(text: str) -> list[str]:
    """The words that count, as the SQuAD script has it: lower case, without punctuation and articles.

    >>> words("The river Thames.")
    ['river', 'thames']
    """
    plain = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", plain).split()


def _lists(expected: Sequence[Sequence[str]]) -> list[list[str]]:
    for i, right in enumerate(expected):
        if isinstance(right, str):
            raise bad(f"expected[{i}]", "a list of right answers", right, "Write [answer].")
    return [list(right) for right in expected]


def _scores(predicted: Sequence[str], expected: Sequence[Sequence[str]]) -> tuple[FloatArray, FloatArray]:
    """Exact match and F1 of each question."""
    exact, overlap = [], []
    for answer, right in pairs(predicted, expected):
        ours, others = words(answer), [words(text) for text in right or [""]]
        exact.append(float(max(ours == other for other in others)))
        overlap.append(max(_f1(ours, other) for other in others))
    return np.array(exact), np.array(overlap)


def _split(scores: dict[str, FloatArray], answered: BoolArray) -> dict[str, float]:
    """The means over all questions, those with an answer and those without, as far as there are any."""
    parts = {"": answered | True, "has_answer_": answered, "no_answer_": ~answered}
    return {
        f"{part}{name}": float(values[chosen].mean())
        for part, chosen in parts.items()
        for name, values in scores.items()
        if chosen.any()
    }


def _best_threshold(
    scores: FloatArray, said: BoolArray, answered: BoolArray, unsure: FloatArray
) -> tuple[float, float]:
    """The best mean score, and the threshold that gives it: from no answer at all, one answer more at a time.

    Like the official script it may stop between questions that are equally unsure.
    """
    order = np.argsort(unsure, kind="stable")
    gains = np.where(answered, scores, -1.0 * said)[order]
    sums = (~answered).sum() + np.concatenate([[0.0], np.cumsum(gains)])
    best = int(np.argmax(sums))
    return float(sums[best] / len(scores)), float(unsure[order[best - 1]]) if best else 0.0


def _f1(ours: list[str], theirs: list[str]) -> float:
    """As the script of SQuAD 2.0 has it: nothing agrees with nothing."""
    if not ours or not theirs:
        return float(ours == theirs)
    hits = sum((Counter(ours) & Counter(theirs)).values())
    return 2 * hits / (len(ours) + len(theirs))
