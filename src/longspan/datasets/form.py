"""What a form is: which columns examples have in files, and what inputs and labels are made of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from longspan.datasets.records import Place, Record, wrong
from longspan.errors import InputError, guess

TEXT = "a text with something in it"


class Named(NamedTuple):
    """A column: its name, what else it may be called, and whether a file must have it."""

    name: str
    others: tuple[str, ...] = ()
    required: bool = True


class Example(NamedTuple):
    """What is made of a row."""

    inputs: tuple[object, ...]
    label: object
    document: str
    "The text that must not stand on both sides of a split."
    more: Mapping[str, object] = {}


class Row(NamedTuple):
    """The columns of a record, by our names."""

    values: Mapping[str, object]
    place: Place

    def get(self, name: str) -> object:
        """A value, or None where nothing stands."""
        value = self.values.get(name)
        return None if value == "" else value

    def text(self, name: str) -> str:
        """A text that is not empty."""
        value = self.values.get(name)
        if not isinstance(value, str) or not value.strip():
            raise wrong(self.place, name, TEXT, value, "Leave out examples without one.")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of texts, at least one."""
        value = self.values.get(name)
        if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
            raise wrong(self.place, name, "a list of texts", value)
        return value


Settle = Callable[
    [Sequence[object], Sequence[Place], Sequence[str] | None, str | None],
    tuple[list[object], tuple[str, ...], str | None],
]
"""(labels, places, names of classes, problem) to the same as they are for all examples together."""


def as_they_are(
    labels: Sequence[object], places: Sequence[Place], wanted: Sequence[str] | None, problem: str | None
) -> tuple[list[object], tuple[str, ...], None]:
    """Labels that are no classes."""
    for name, value in (("labels", wanted), ("problem", problem)):
        if value is not None:
            raise InputError(f"`{name}` must be None for examples without classes, but is {value!r}.")
    return list(labels), (), None


@dataclass(frozen=True)
class Form:
    """What labeled examples are."""

    names: tuple[str, ...]
    "Of the inputs."
    columns: tuple[Named, ...]
    make: Callable[[Row], Example]
    settle: Settle = as_they_are

    def row(self, record: Record, columns: Mapping[str, str]) -> tuple[Row, dict[str, object]]:
        """The columns of a record, some of which the user has named, and what else it holds."""
        there, found = record.values, dict[str, str]()
        known = [column.name for column in self.columns]
        for name in columns:
            if name not in known:
                what = f"`columns` must name some of {', '.join(known)}, but has {name!r}."
                raise InputError(f"{what} {guess(name, known)}".rstrip())
        lower = {name.lower(): name for name in there}
        for column in self.columns:
            wanted = columns.get(column.name)
            names = (wanted,) if wanted is not None else (column.name, *column.others)
            own = next((name for name in names if name in there), None)
            own = own or next((lower[name.lower()] for name in names if name.lower() in lower), None)
            if own is not None:
                found[column.name] = own
            elif column.required or wanted is not None:
                raise _no_column(column, names, there, record.place)
        taken = set(found.values())
        row = Row({name: there[own] for name, own in found.items()}, record.place)
        return row, {name: value for name, value in there.items() if name not in taken}


def _no_column(column: Named, names: Sequence[str], there: Iterable[str], place: Place) -> InputError:
    first, *others = names
    called = f"`{first}`" + (f" (or {', '.join(others)})" if others else "")
    known = ", ".join(there) or "nothing"
    some = next(iter(there), "body")
    repair = f"Name it: columns={{{column.name!r}: {some!r}}}."
    return InputError(f"{place}: there is no column {called}. There is {known}. {repair}")
