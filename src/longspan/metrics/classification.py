"""Labels: accuracy, precision, recall and F1 of each label and over all, and Matthews' correlation.

A label is any hashable value. A set of them stands for the labels of a text that may have several, or none.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeAlias

import numpy as np

from longspan.metrics.checks import known, pairs
from longspan.metrics.counts import PrecisionRecall, precision_recall, ratio

Labels: TypeAlias = Hashable | AbstractSet[Hashable]


def accuracy(predicted: Sequence[Labels], expected: Sequence[Labels]) -> dict[str, float]:
    """The share of predictions that are right; a set must be right as a whole.

    >>> accuracy(["a", "b"], ["a", "c"])
    {'accuracy': 0.5}
    """
    cases = pairs(predicted, expected)
    return {"accuracy": sum(one == other for one, other in cases) / len(cases)}


def by_label(
    predicted: Sequence[Labels], expected: Sequence[Labels], labels: Sequence[Hashable] | None = None
) -> dict[Hashable, PrecisionRecall]:
    """Precision, recall and F1 of each of the labels, by default of those that occur.

    >>> by_label(["a", "b"], ["a", "a"])["a"]
    {'precision': 1.0, 'recall': 0.5, 'f1': 0.6666666666666666}
    """
    cases = [(_set(one), _set(other)) for one, other in pairs(predicted, expected)]
    hits, said, true = (Counter[Hashable](), Counter[Hashable](), Counter[Hashable]())
    for ours, theirs in cases:
        hits.update(ours & theirs)
        said.update(ours)
        true.update(theirs)
    if labels is None:
        labels = sorted({*said, *true}, key=str)
    known("expected", true, labels)
    known("predicted", said, labels)
    return {label: precision_recall(hits[label], said[label], true[label]) for label in labels}


def label_f1(
    predicted: Sequence[Labels], expected: Sequence[Labels], labels: Sequence[Hashable] | None = None
) -> dict[str, float]:
    """Macro F1, the mean over labels, and micro F1, of all decisions; with one label each it is the accuracy.

    >>> {name: round(value, 3) for name, value in label_f1(["a", "b"], ["a", "a"]).items()}
    {'macro_f1': 0.333, 'micro_f1': 0.5}
    """
    each = by_label(predicted, expected, labels)
    micro = set_f1(map(_set, predicted), map(_set, expected))["f1"]
    return {"macro_f1": ratio(sum(one["f1"] for one in each.values()), len(each)), "micro_f1": micro}


def set_f1(
    predicted: Iterable[AbstractSet[Hashable]], expected: Iterable[AbstractSet[Hashable]]
) -> dict[str, float]:
    """Micro-averaged precision, recall and F1 of sets, such as the entities (start, end, label) of each text.

    >>> set_f1([{1, 2}], [{2, 3}])["f1"]
    0.5
    """
    cases = pairs(predicted, expected)
    hits = sum(len(ours & theirs) for ours, theirs in cases)
    said, true = sum(len(ours) for ours, _ in cases), sum(len(theirs) for _, theirs in cases)
    found = precision_recall(hits, said, true)
    return {"precision": found["precision"], "recall": found["recall"], "f1": found["f1"]}


def matthews(predicted: Sequence[Hashable], expected: Sequence[Hashable]) -> dict[str, float]:
    """The correlation of two labelings (Matthews 1975; Gorodkin 2004 for more labels than two); 0 by chance.

    >>> matthews(["no", "yes"], ["no", "yes"])
    {'matthews': 1.0}
    """
    cases = pairs(predicted, expected)
    said, true = Counter(one for one, _ in cases), Counter(other for _, other in cases)
    size, right = len(cases), sum(one == other for one, other in cases)
    shared = sum(said[label] * true[label] for label in true)
    spread = (size**2 - sum(n**2 for n in said.values())) * (size**2 - sum(n**2 for n in true.values()))
    return {"matthews": ratio(right * size - shared, float(np.sqrt(spread)))}


def _set(value: Labels) -> AbstractSet[Hashable]:
    return value if isinstance(value, AbstractSet) else {value}
