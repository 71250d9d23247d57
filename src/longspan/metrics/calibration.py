"""Whether confidence is deserved, and the temperature that makes it so."""

from collections.abc import Sequence

import numpy as np

from longspan.errors import bad, whole
from longspan.metrics.checks import numbers
from longspan.shapes import BoolArray, FloatArray, IntArray

TEMPERATURES = (0.01, 100.0)
"""Between these `fit_temperature` looks: if all is right, no temperature is low enough."""


def calibration_error(confidence: Sequence[float], right: Sequence[bool], bins: int = 15) -> dict[str, float]:
    """The mean distance of confidence and accuracy in bins of equal width (Guo et al. 2017).

    >>> round(calibration_error([0.9, 0.9], [True, False])["calibration_error"], 6)
    0.4
    """
    sure, flags = _binary(confidence, right)
    count = whole("bins", bins, 1)
    places = np.clip(np.ceil(sure * count).astype(int) - 1, 0, None)  # (low, high], and 0 in the first
    gaps = np.bincount(places, sure - flags, count)
    return {"calibration_error": float(np.abs(gaps).sum() / len(sure))}


def brier(confidence: Sequence[float], right: Sequence[bool]) -> dict[str, float]:
    """The mean squared distance of a probability from what was so, 1 or 0 (Brier 1950).

    >>> brier([1.0, 0.5], [True, False])
    {'brier': 0.125}
    """
    sure, flags = _binary(confidence, right)
    return {"brier": float(np.square(sure - flags).mean())}


def likelihood_loss(
    logits: Sequence[Sequence[float]] | FloatArray, labels: Sequence[int], temperature: float = 1.0
) -> float:
    """The mean negative log-likelihood of labels given logits (B, labels), divided by a temperature.

    >>> round(likelihood_loss([[0.0, 0.0]], [1]), 3)
    0.693
    """
    scores, right = _logits(logits, labels)
    if not temperature > 0:
        raise bad("temperature", "above 0", temperature)
    scaled = scores / temperature
    return float(np.mean(np.logaddexp.reduce(scaled, axis=1) - scaled[np.arange(len(right)), right]))


def fit_temperature(logits: Sequence[Sequence[float]] | FloatArray, labels: Sequence[int]) -> float:
    """The temperature whose `likelihood_loss` is least on held-out logits (B, labels), from 0.01 to 100.

    >>> round(fit_temperature([[3.0, 0.0]] * 3 + [[0.0, 3.0]], [0, 0, 0, 0]), 2)
    2.73
    """
    scores, right = _logits(logits, labels)
    scores = scores - scores.max(axis=1, keepdims=True)
    chosen = scores[np.arange(len(right)), right]
    # The loss is convex in 1 / temperature: its slope says on which side of the middle the minimum is.
    low, high = np.log(TEMPERATURES)
    for _ in range(60):
        middle = (low + high) / 2
        weights = np.exp(scores * np.exp(-middle))
        slope = np.mean((weights * scores).sum(axis=1) / weights.sum(axis=1) - chosen)
        low, high = (low, middle) if slope < 0 else (middle, high)
    return float(np.exp((low + high) / 2))


def _binary(confidence: Sequence[float], right: Sequence[bool]) -> tuple[FloatArray, BoolArray]:
    sure = numbers("confidence", confidence, len(right))
    if sure.min() < 0 or sure.max() > 1:
        raise bad("confidence", "probabilities from 0 to 1", float(sure[np.argmax(np.abs(sure - 0.5))]))
    return sure, np.array(right, bool)


def _logits(
    logits: Sequence[Sequence[float]] | FloatArray, labels: Sequence[int]
) -> tuple[FloatArray, IntArray]:
    scores, right = np.asarray(logits, np.float64), np.asarray(labels)
    if scores.ndim != 2 or not scores.size or not np.isfinite(scores).all():
        raise bad("logits", "rows of finite numbers, one for each label", logits)
    if right.shape != scores.shape[:1] or right.dtype.kind not in "iu":
        raise bad("labels", f"{len(scores)} whole numbers, one for each row of logits", labels)
    if right.min() < 0 or right.max() >= scores.shape[1]:
        raise bad(
            "labels",
            f"from 0 to {scores.shape[1] - 1}",
            int(right.max() if right.min() >= 0 else right.min()),
        )
    return scores, right
