"""Records: what a file holds one after the other, by name, each with the place where it stands."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from longspan.errors import InputError, bad

SHOWN = 60
"""Characters of a value that errors show."""
NOTHING: Mapping[str, object] = MappingProxyType({})
T = TypeVar("T")


class Place(NamedTuple):
    """Where an example stands."""

    file: Path
    line: int
    "From 1; in a Parquet file the row."
    inside: str = ""
    "Where in what begins in that line."

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}" + (f", {self.inside}" if self.inside else "")

    def at(self, inside: str) -> "Place":
        """A place inside of this one."""
        return self._replace(inside=f"{self.inside}.{inside}" if self.inside else inside)


class Record(NamedTuple):
    """An object of a file, or a row."""

    values: Mapping[str, object]
    place: Place
    beside: Mapping[str, object] = NOTHING
    "What the file says of all its records."

    def child(self, values: Mapping[str, object], inside: str = "") -> "Record":
        """A record that stands inside of this one."""
        return Record(values, self.place.at(inside) if inside else self.place)


def wrong(place: Place, name: str, requirement: str, value: object, repair: str = "") -> InputError:
    """The error for a value in a file, to be raised by the caller.

    >>> str(wrong(Place(Path("a.csv"), 2), "text", "a text with something in it", ""))
    "a.csv, line 2: `text` must be a text with something in it, but is ''."
    """
    return InputError(f"{place}: {bad(name, requirement, shown(value), repair)}")


def shown(value: object) -> object:
    """A value, or its beginning.

    >>> shown("so on " * 30)
    'so on so on so on so on so on so on so on so on so on so on ...'
    """
    if isinstance(value, str):
        return value if len(value) <= SHOWN else value[:SHOWN] + "..."
    if isinstance(value, list | tuple | Mapping) and len(repr(value)) > 2 * SHOWN:
        return f"a {type(value).__name__} of {len(value)}"
    return value


KINDS = {str: "a text", list: "a list", dict: "an object", int: "a whole number"}


def get(values: object, name: str, kind: type[T], place: Place) -> T:
    """The value of that name and kind, or the error that says what is there.

    >>> get({"title": "Emma"}, "title", str, Place(Path("a.json"), 1))
    'Emma'
    """
    if not isinstance(values, Mapping):
        raise wrong(place, name, "in an object", values)
    if name not in values:
        there = ", ".join(map(str, values)) or "nothing"
        raise InputError(f"{place}: `{name}` is missing: it must be {KINDS[kind]}. There is {there}.")
    value = values[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise wrong(place, name, KINDS[kind], value)
    return value
