"""Names of classes in config.json, and what kind of problem they answer."""

from collections.abc import Sequence
from typing import Any

from longspan.errors import bad, one_of, whole
from longspan.families.schema import Raw

MOST = 2**16
"""Classes at most: a config is data from anywhere."""
PROBLEMS = {
    "single": "single_label_classification",
    "multi": "multi_label_classification",
    "regression": "regression",
}


def read_labels(raw: Raw, labels: int | Sequence[str] | None = None) -> tuple[str, ...]:
    """The names of the classes: those of `labels`, or the file's, or LABEL_0, LABEL_1 and so on.

    >>> read_labels({"id2label": {"0": "no", "1": "yes"}})
    ('no', 'yes')
    """
    if isinstance(labels, int):
        stored = _stored(raw)
        return stored if len(stored) == labels else _numbered(whole("labels", labels, 1, most=MOST))
    if labels is not None:
        return _checked(labels)
    return _stored(raw)


def read_problem(raw: Raw) -> str | None:
    """ "single", "multi" or "regression"; None if the file does not say."""
    stated, names = raw.get("problem_type"), {theirs: ours for ours, theirs in PROBLEMS.items()}
    return None if stated is None else names[one_of("problem_type", stated, names)]


def written(labels: Sequence[str] | None, problem: str | None, count: int, raw: Raw) -> dict[str, Any]:
    """The fields of config.json for `count` classes."""
    names = read_labels(raw, count) if labels is None else _checked(labels)
    if len(names) != count:
        raise bad("labels", f"{count} names, as many as the head gives", f"{len(names)} names")
    problem = read_problem(raw) if problem is None else problem
    if problem is not None:
        one_of("problem", problem, PROBLEMS)
    fields: dict[str, Any] = {
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }
    return fields | ({"problem_type": PROBLEMS[problem]} if problem else {})


def _stored(raw: Raw) -> tuple[str, ...]:
    table = raw.get("id2label")
    if table is None:
        return _numbered(whole("num_labels", raw.get("num_labels", 2), 1, most=MOST))
    if not isinstance(table, dict) or sorted(table) != sorted(map(str, range(len(table)))):
        raise bad("id2label", "names by number, from 0 on without a gap", table)
    return _checked([table[str(number)] for number in range(len(table))])


def _checked(names: Sequence[str]) -> tuple[str, ...]:
    if (
        isinstance(names, str)
        or not isinstance(names, Sequence)
        or not all(isinstance(name, str) for name in names)
    ):
        raise bad("labels", "a list of words", names)
    if not 1 <= len(names) <= MOST:
        raise bad("labels", f"1 to {MOST} names", f"{len(names)} names")
    return tuple(names)


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"LABEL_{number}" for number in range(count))
