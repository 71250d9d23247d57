"""Labels of texts: of one kind in a whole dataset, and the names of their classes."""

import re
from collections.abc import Sequence

from longspan.datasets.records import Place, wrong
from longspan.errors import bad, guess, one_of

PROBLEMS = ("single", "multi", "regression")
MOST_CLASSES = 1 << 16
MISSING = (None, "")
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,2})?", re.IGNORECASE)
REPAIR = "One dataset has labels of one kind: names, whole numbers, lists of these, or numbers."


def present(labels: Sequence[object], places: Sequence[Place]) -> None:
    """Raise an error for the first example without a label."""
    for label, place in zip(labels, places, strict=True):
        if label in MISSING:
            raise wrong(place, "label", "given", label, "Leave out examples without one.")


def classified(
    labels: Sequence[object], places: Sequence[Place], wanted: Sequence[str] | None, problem: str | None
) -> tuple[list[object], tuple[str, ...], str]:
    """The labels as tasks take them, the names of the classes, and the kind of problem.

    Names give classes in sorted order if `wanted` does not say them; numbers with a point are a regression,
    and so are all numbers if `problem` says it.

    >>> from pathlib import Path
    >>> classified(["b", "a"], [Place(Path("x"), 1), Place(Path("x"), 2)], None, None)
    (['b', 'a'], ('a', 'b'), 'single')
    """
    if problem is not None:
        one_of("problem", problem, PROBLEMS)
    present(labels, places)
    read = list(labels) if wanted is not None and _all_in(labels, wanted) else _numbers(labels)
    if problem == "regression" or (problem is None and any(type(label) is float for label in read)):
        if wanted is not None:
            raise bad("labels", "None where labels are numbers", list(wanted), "A regression has no classes.")
        return _regression(read, places), (), "regression"
    kinds = dict.fromkeys(_kind(label, place) for label, place in zip(read, places, strict=True))
    if len(kinds) > 1:
        kind = _kind(read[0], places[0])
        other = next(i for i, label in enumerate(read) if _kind(label, places[i]) != kind)
        raise wrong(places[other], "label", f"{kind}, as in line {places[0].line}", read[other], REPAIR)
    several = isinstance(read[0], list)
    if problem is not None and several != (problem == "multi"):
        requirement = "a list" if problem == "multi" else "one label"
        raise wrong(places[0], "label", f"{requirement} for the problem {problem!r}", read[0])
    members = [one for label in read for one in (label if isinstance(label, list) else [label])]
    for label, place in zip(read, places, strict=True):
        for one in label if isinstance(label, list) else [label]:
            if type(one) is not type(members[0]):
                raise wrong(place, "label", f"of the kind of {members[0]!r}, as others are", label, REPAIR)
    classes = _classes(members, wanted)
    for label, place in zip(read, places, strict=True):
        for one in label if isinstance(label, list) else [label]:
            _check(one, classes, place)
    return read, classes, "multi" if several else "single"


def _numbers(labels: Sequence[object]) -> list[object]:
    """Labels of a table as numbers, if all are; truth values as names."""
    for kind, pattern in ((int, _WHOLE), (float, _NUMBER)):
        if labels and all(isinstance(label, str) and pattern.fullmatch(label) for label in labels):
            return [kind(str(label)) for label in labels]
    return [str(label).lower() if isinstance(label, bool) else label for label in labels]


def _all_in(labels: Sequence[object], wanted: Sequence[str]) -> bool:
    """Whether labels that look like numbers are names."""
    return all(isinstance(label, str) and label in wanted for label in labels)


def _kind(label: object, place: Place) -> str:
    if isinstance(label, list) and all(isinstance(one, str) or type(one) is int for one in label):
        return "a list"
    if isinstance(label, str) or type(label) is int:
        return "a name" if isinstance(label, str) else "a whole number"
    raise wrong(place, "label", "a name, a whole number, a number with a point or a list of names", label)


def _regression(labels: Sequence[object], places: Sequence[Place]) -> list[object]:
    """Numbers, or equally many for each example."""
    widths = [len(label) if isinstance(label, list) else 0 for label in labels]
    for label, place in zip(labels, places, strict=True):
        for one in label if isinstance(label, list) else [label]:
            if (
                isinstance(one, bool)
                or not isinstance(one, int | float)
                or one != one
                or abs(one) == float("inf")
            ):
                raise wrong(place, "label", "a number, as others are", label, REPAIR)
    for label, place, width in zip(labels, places, widths, strict=True):
        if width != widths[0]:
            raise wrong(place, "label", f"as many numbers as in line {places[0].line}", label)
    return [label if isinstance(label, list) else float(str(label)) for label in labels]


def _classes(members: Sequence[object], wanted: Sequence[str] | None) -> tuple[str, ...]:
    if wanted is not None:
        if not wanted or len(set(wanted)) != len(wanted):
            raise bad("labels", "names of classes, each once", list(wanted))
        return tuple(wanted)
    if numbers := [one for one in members if isinstance(one, int)]:
        return tuple(map(str, range(min(max(numbers), MOST_CLASSES) + 1)))
    return tuple(sorted(set(map(str, members))))


def _check(label: object, classes: Sequence[str], place: Place) -> None:
    if isinstance(label, int):
        if not 0 <= label < len(classes):
            repair = "Is it a regression? Then say problem='regression'."
            raise wrong(place, "label", f"the number of a class, from 0 to {len(classes) - 1}", label, repair)
    elif label not in classes:
        raise wrong(place, "label", f"one of {', '.join(classes[:20])}", label, guess(label, classes))
