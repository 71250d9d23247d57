"""Where rows of a tensor stand: columns that are indexed together."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from longspan.errors import InputError
from longspan.shapes import BoolArray, IntArray

RowIndex = slice | list[int] | IntArray | BoolArray | tuple[slice | IntArray | None, ...] | None
"""What numpy takes to select rows, or to add an axis."""


class Tags(dict[str, IntArray]):
    """Columns by name; asking for one that is not there is an error that says how to give it."""

    def __missing__(self, name: str) -> IntArray:
        given = ", ".join(map(repr, self)) or "none"
        repair = f"Give it to the layout: Layout.packed(lengths, tags={{{name!r}: ...}})."
        raise InputError(f"`tags` must hold {name!r}, but hold {given}. {repair}")


@dataclass(frozen=True, eq=False)
class Site:
    """Columns of equal shape that tell where rows stand; index it as you would index one column."""

    position: IntArray
    "Place in the document, counted from 0 (`start` included)."
    last: IntArray
    "Last token covered: the position itself, except for pooled slots."
    document: IntArray
    length: IntArray
    "Length of the row's document: the number of positions from 0."
    marked: BoolArray
    exists: BoolArray
    tags: Mapping[str, IntArray] = field(default_factory=Tags)

    def __post_init__(self) -> None:
        if type(self.tags) is not Tags:
            object.__setattr__(self, "tags", Tags(self.tags))

    def __getitem__(self, index: RowIndex) -> "Site":
        """The same index taken of every column."""
        return Site(
            self.position[index],
            self.last[index],
            self.document[index],
            self.length[index],
            self.marked[index],
            self.exists[index],
            Tags({name: tag[index] for name, tag in self.tags.items()}),
        )

    @property
    def columns(self) -> tuple[IntArray | BoolArray, ...]:
        """All but the tags."""
        return self.position, self.last, self.document, self.length, self.marked, self.exists

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of every column."""
        return self.position.shape
