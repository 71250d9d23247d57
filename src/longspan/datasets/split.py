"""Splits that do not leak: what has the same text, or the same value of a column, stays together."""

from collections.abc import Mapping

import numpy as np

from longspan.datasets.dataset import Dataset
from longspan.errors import bad, number
from longspan.shuffled import shuffled


def split(
    dataset: Dataset, shares: Mapping[str, float], seed: int = 0, *, by: str | None = None
) -> dict[str, Dataset]:
    """Parts by name, as in {"train": 0.8, "test": 0.2}; shares that do not sum to 1 leave examples out.

    Examples with equal documents, and those with equal values in the column `by`, are in one part. The order
    of the examples in the files does not matter.
    """
    for name, share in shares.items():
        number(f"shares[{name!r}]", share, 0, 1)
    total = sum(shares.values())
    if not shares or not 0 < total <= 1 + 1e-9:
        raise bad("shares", "names with shares that sum to at most 1", dict(shares))
    groups = _groups(dataset, by)
    order = shuffled(np.arange(len(groups)), len(groups), (seed, 0)).tolist()
    bounds = np.cumsum(list(shares.values())) * len(dataset)
    parts: list[list[int]] = [[] for _ in shares]
    done = 0
    for group in order:
        part = int(np.searchsorted(bounds, done + len(groups[group]) / 2))
        done += len(groups[group])
        if part < len(parts):
            parts[part] += groups[group]
    for (name, share), examples in zip(shares.items(), parts, strict=True):
        if not examples:
            repair = f"There are {len(groups)} groups that must stay together."
            raise bad(f"shares[{name!r}]", "large enough for an example", share, repair)
    return {name: dataset.take(sorted(part)) for name, part in zip(shares, parts, strict=True)}


def _groups(dataset: Dataset, by: str | None) -> list[list[int]]:
    """The examples that must stay together, ordered by what they hold."""
    values = dataset.column(by) if by is not None else None
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def root(key: tuple[str, str]) -> tuple[str, str]:
        while parent.setdefault(key, key) != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    keys = [("document", digest) for digest in dataset.documents]
    if values is not None:
        for key, value in zip(keys, values, strict=True):
            first, second = sorted((root(key), root(("value", repr(value)))))
            parent[second] = first
    groups: dict[tuple[str, str], list[int]] = {}
    for example, key in enumerate(keys):
        groups.setdefault(root(key), []).append(example)
    return [groups[key] for key in sorted(groups)]
