"""Evidence, and answers that stand on it: HotpotQA's measures (Yang et al. 2018)."""

from collections import Counter
from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from longspan.metrics.answers import words
from longspan.metrics.checks import pairs
from longspan.metrics.counts import harmonic, precision_recall

NAMES = ("exact_match", "f1", "precision", "recall")
Facts = AbstractSet[Hashable]


def evidence(predicted: Sequence[Facts], expected: Sequence[Facts]) -> dict[str, float]:
    """Means over questions: exact match, F1, precision and recall of sets of facts, as (title, sentence).

    >>> evidence([{("Rome", 0), ("Rome", 1)}], [{("Rome", 0)}])["precision"]
    0.5
    """
    return _means("", [_facts(ours, theirs) for ours, theirs in pairs(predicted, expected)])


def hotpot(predicted: Sequence[tuple[str, Facts]], expected: Sequence[tuple[str, Facts]]) -> dict[str, float]:
    """Exact match, F1, precision and recall of answers, of facts (`facts_*`) and of both as one (`joint_*`).

    The joint precision of a question is the product of both, and so are recall and exact match.

    >>> found = hotpot([("Rome", {1, 2})], [("in Rome", {1})])
    >>> round(found["f1"], 2), round(found["facts_f1"], 2), round(found["joint_f1"], 2)
    (0.67, 0.67, 0.5)
    """
    cases = pairs(predicted, expected)
    answers = [_answer(ours, theirs) for (ours, _), (theirs, _) in cases]
    facts = [_facts(ours, theirs) for (_, ours), (_, theirs) in cases]
    joint = [_joint(one, other) for one, other in zip(answers, facts, strict=True)]
    return {**_means("", answers), **_means("facts_", facts), **_means("joint_", joint)}


Row = tuple[float, float, float, float]


def _facts(ours: Facts, theirs: Facts) -> Row:
    found = precision_recall(len(ours & theirs), len(ours), len(theirs))
    return float(ours == theirs), found["f1"], found["precision"], found["recall"]


def _answer(text: str, right: str) -> Row:
    """As for SQuAD, but yes and no are right only as a whole."""
    ours, theirs = words(text), words(right)
    same = ours == theirs
    closed = any(one in (["yes"], ["no"], ["noanswer"]) for one in (ours, theirs))
    hits = 0 if closed and not same else sum((Counter(ours) & Counter(theirs)).values())
    found = precision_recall(hits, len(ours), len(theirs))
    return float(same), found["f1"], found["precision"], found["recall"]


def _joint(answer: Row, facts: Row) -> Row:
    exact, _, precision, recall = (one * other for one, other in zip(answer, facts, strict=True))
    return exact, harmonic(precision, recall), precision, recall


def _means(prefix: str, rows: Sequence[Row]) -> dict[str, float]:
    means = np.mean(rows, axis=0).tolist()
    return {f"{prefix}{name}": value for name, value in zip(NAMES, means, strict=True)}
