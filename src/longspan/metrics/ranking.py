"""Ranked results: mean average precision, mean reciprocal rank, precision and recall of the first k."""

from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from longspan.errors import bad, whole
from longspan.metrics.checks import numbers, pairs
from longspan.shapes import BoolArray, FloatArray


def ranking(
    predicted: Sequence[Sequence[Hashable]],
    expected: Sequence[AbstractSet[Hashable]],
    at: Sequence[int] = (1, 5, 10),
) -> dict[str, float]:
    """Means over questions, as trec_eval has them: `map`, `mrr`, and `precision_at_k` and `recall_at_k`.

    A prediction is a list, the best first; what it lacks is never found, and places after its end are wrong.

    >>> found = ranking([["b", "a", "c"]], [{"a", "c"}], at=[2])
    >>> round(found["map"], 3), found["mrr"], found["precision_at_2"], found["recall_at_2"]
    (0.583, 0.5, 0.5, 0.5)
    """
    ends = [whole("at", k, 1) for k in at]
    rows = []
    for i, (ranked, relevant) in enumerate(pairs(predicted, expected)):
        if not relevant:
            raise bad(f"expected[{i}]", "a set of at least one relevant result", relevant)
        if len(set(ranked)) < len(ranked):
            raise bad(f"predicted[{i}]", "a list without repetitions", ranked)
        hits = np.array([one in relevant for one in ranked], np.float64)
        precisions = np.cumsum(hits) / np.arange(1, len(hits) + 1)
        first = float(1 / (np.argmax(hits) + 1)) if hits.any() else 0.0
        shares = [share for k in ends for share in (hits[:k].sum() / k, hits[:k].sum() / len(relevant))]
        rows.append([float((precisions * hits).sum()) / len(relevant), first, *shares])
    names = ["map", "mrr", *(f"{name}_at_{k}" for k in ends for name in ("precision", "recall"))]
    return dict(zip(names, np.mean(rows, axis=0).tolist(), strict=True))


def scored(predicted: Sequence[Sequence[float]], expected: Sequence[Sequence[bool]]) -> dict[str, float]:
    """`map` and the precision at 80 % and 90 % recall of scored candidates, such as the spans of ContractNLI.

    A list holds all candidates for a question (there: for a hypothesis, of all contracts that speak of it).
    Means are over lists. Candidates of one score are taken together, as scikit-learn does.

    >>> scored([[0.9, 0.8, 0.1]], [[True, False, True]])["map"]
    0.8333333333333333
    """
    rows = []
    for i, (scores, right) in enumerate(pairs(predicted, expected)):
        flags = np.array(right, bool)
        if not flags.any():
            raise bad(f"expected[{i}]", "a list with at least one right candidate", right)
        recalls, precisions = _curve(numbers(f"predicted[{i}]", scores, len(flags)), flags)
        average = float((np.diff(recalls, prepend=0) * precisions).sum())
        rows.append([average, *(float(precisions[np.argmax(recalls >= least)]) for least in (0.8, 0.9))])
    names = ("map", "precision_at_80_recall", "precision_at_90_recall")
    return dict(zip(names, np.mean(rows, axis=0).tolist(), strict=True))


def _curve(scores: FloatArray, right: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Recall and precision of all candidates down to each score."""
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    hits = np.cumsum(right[order])[ends]
    return hits / right.sum(), hits / (ends + 1)
