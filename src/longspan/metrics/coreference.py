"""Coreference: MUC, B-cubed, CEAF-e, LEA and the CoNLL F1, summed over documents as the official scorers do.

The clusters of a document are a list of sets of mentions: hashable values such as (start, end). Nothing is
added, taken away or aligned before counting (Pradhan et al. 2014; version 8 of the CoNLL scorer). So clusters
of one mention count, except in MUC, as they have no links. The keys of CoNLL-2012 have none, and a prediction
that has some loses precision. `without_singletons` leaves them out.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import TypeAlias

import numpy as np

from longspan.errors import bad
from longspan.metrics.assignment import assign
from longspan.metrics.checks import pairs
from longspan.metrics.counts import harmonic, ratio
from longspan.shapes import FloatArray

Clusters: TypeAlias = Sequence[AbstractSet[Hashable]]
MEASURES = ("mentions", "muc", "b_cubed", "ceaf_e", "lea")
CONLL = ("muc", "b_cubed", "ceaf_e")


def coreference(predicted: Sequence[Clusters], expected: Sequence[Clusters]) -> dict[str, float]:
    """Precision, recall and F1 of each measure over documents, and `conll_f1`, the mean F1 of three of them.

    >>> found = coreference([[{1, 2}, {3, 4, 5}]], [[{1, 2, 3}, {4, 5}]])
    >>> round(found["muc_f1"], 3), round(found["b_cubed_f1"], 3), round(found["conll_f1"], 3)
    (0.667, 0.733, 0.733)
    """
    return figures([counts(ours, theirs) for ours, theirs in pairs(predicted, expected)])


def counts(predicted: Clusters, expected: Clusters) -> FloatArray:
    """What a document adds to each measure: numerator and denominator of precision, and of recall (5, 4).

    >>> counts([{1, 2}], [{1, 2, 3}])[MEASURES.index("muc")].tolist()
    [1.0, 1.0, 1.0, 2.0]
    """
    ours, theirs = _checked("predicted", predicted), _checked("expected", expected)
    similar = _similarity(predicted, expected)
    return np.array(
        [
            [len(ours.keys() & theirs.keys()), len(ours), len(ours.keys() & theirs.keys()), len(theirs)],
            [*_muc(predicted, theirs), *_muc(expected, ours)],
            [*_b_cubed(predicted, theirs), *_b_cubed(expected, ours)],
            [similar, len(predicted), similar, len(expected)],
            [*_lea(predicted, expected, theirs), *_lea(expected, predicted, ours)],
        ],
        np.float64,
    )


def figures(documents: Sequence[FloatArray]) -> dict[str, float]:
    """What `coreference` reports, from the `counts` of documents, or of a resample of them."""
    found: dict[str, float] = {}
    for name, (hits, said, recalled, true) in zip(MEASURES, np.sum(documents, axis=0), strict=True):
        precision, recall = ratio(hits, said), ratio(recalled, true)
        found |= {f"{name}_precision": precision, f"{name}_recall": recall}
        found[f"{name}_f1"] = harmonic(precision, recall)
    return found | {"conll_f1": sum(found[f"{name}_f1"] for name in CONLL) / len(CONLL)}


def without_singletons(clusters: Clusters) -> list[AbstractSet[Hashable]]:
    """The clusters of more than one mention.

    >>> without_singletons([{1}, {2, 3}])
    [{2, 3}]
    """
    return [cluster for cluster in clusters if len(cluster) > 1]


def _checked(name: str, clusters: Clusters) -> dict[Hashable, int]:
    """The cluster of each mention, by its place in the list."""
    for i, cluster in enumerate(clusters):
        if not isinstance(cluster, AbstractSet) or not cluster:
            raise bad(f"{name}[{i}]", "a set of at least one mention", cluster)
    times = Counter(chain.from_iterable(clusters))
    if twice := [mention for mention, count in times.items() if count > 1]:
        raise bad(name, "clusters that share no mention", twice[0], "This mention is in two of them.")
    return {mention: i for i, cluster in enumerate(clusters) for mention in cluster}


def _parts(cluster: AbstractSet[Hashable], others: dict[Hashable, int]) -> Counter[int]:
    """How many of the cluster's mentions each of the other clusters has."""
    return Counter(others[mention] for mention in cluster if mention in others)


def _muc(clusters: Clusters, others: dict[Hashable, int]) -> tuple[float, float]:
    """Links that are kept, of those that join the mentions of each cluster (Vilain et al. 1995)."""
    kept = 0
    for cluster in clusters:
        parts = _parts(cluster, others)
        kept += parts.total() - len(parts)
    return kept, sum(len(cluster) - 1 for cluster in clusters)


def _b_cubed(clusters: Clusters, others: dict[Hashable, int]) -> tuple[float, float]:
    """For each mention the share of its cluster that its other cluster has, too (Bagga and Baldwin 1998)."""
    shared = sum(n * n / len(cluster) for cluster in clusters for n in _parts(cluster, others).values())
    return shared, sum(map(len, clusters))


def _similarity(predicted: Clusters, expected: Clusters) -> float:
    """The sum of phi4, the Dice coefficient, of clusters paired at best (CEAF-e: Luo 2005)."""
    if not predicted or not expected:
        return 0.0
    return assign(np.array([[2 * len(a & b) / (len(a) + len(b)) for b in expected] for a in predicted]))


def _lea(clusters: Clusters, others: Clusters, other_of: dict[Hashable, int]) -> tuple[float, float]:
    """The share of links that both have, by size; a singleton links to itself (Moosavi and Strube 2016)."""
    resolved = 0.0
    for cluster in clusters:
        parts = _parts(cluster, other_of)
        if len(cluster) == 1:
            resolved += sum(len(others[place]) == 1 for place in parts)
        else:
            resolved += sum(n * (n - 1) for n in parts.values()) / (len(cluster) - 1)
    return resolved, sum(map(len, clusters))
