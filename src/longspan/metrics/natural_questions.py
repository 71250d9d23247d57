"""Answers as exact spans that several people marked: Natural Questions (Kwiatkowski et al. 2019)."""

from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from longspan.errors import bad, whole
from longspan.metrics.checks import numbers, pairs
from longspan.metrics.counts import harmonic

PRECISIONS = (0.5, 0.75, 0.9)
Spans = AbstractSet[Hashable]


def natural_questions(
    predicted: Sequence[Spans], scores: Sequence[float], expected: Sequence[Sequence[Spans]], agree: int = 2
) -> dict[str, float]:
    """F1, precision and recall at the best threshold, and the recall that precisions of 0.5 to 0.9 allow.

    A prediction is a set of spans, or {"yes"}, or empty for no answer; `expected` has such a set from each
    annotator. A question has an answer if at least `agree` of them give one; then each of theirs is right.

    >>> found = natural_questions([{(3, 5)}, {(0, 1)}], [0.9, 0.2], [[{(3, 5)}, {(3, 4)}], [{(7, 9)}, set()]])
    >>> found["f1"], found["threshold"], found["recall_at_precision_0.9"]
    (1.0, 0.9, 1.0)
    """
    least = whole("agree", agree, 1)
    cases = pairs(predicted, expected)
    sure = numbers("scores", scores, len(cases))
    has_answer = [sum(map(bool, marked)) >= least for _, marked in cases]
    if not any(has_answer):
        raise bad("expected", f"at least one question that {least} annotators answer", 0)
    right = np.array(
        [
            there and bool(ours) and ours in marked
            for there, (ours, marked) in zip(has_answer, cases, strict=True)
        ]
    )
    said = np.array([bool(ours) for ours, _ in cases])
    order = np.argsort(-sure, kind="stable")
    # Questions of one score are answered together: only the last of them is a threshold.
    ends = np.flatnonzero(np.append(np.diff(sure[order]) != 0, True))
    hits, answers = (np.cumsum(values[order])[ends] for values in (right, said))
    precisions, recalls = hits / np.maximum(answers, 1), hits / sum(has_answer)
    f1 = [harmonic(precision, recall) for precision, recall in zip(precisions, recalls, strict=True)]
    best = int(np.argmax(f1))
    return {
        "f1": f1[best],
        "precision": float(precisions[best]),
        "recall": float(recalls[best]),
        "threshold": float(sure[order][ends[best]]) if f1[best] else 0.0,
        **{
            f"recall_at_precision_{share}": float(recalls[precisions >= share].max(initial=0.0))
            for share in PRECISIONS
        },
    }
