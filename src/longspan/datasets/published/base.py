"""What a published format is, as data."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from longspan.datasets.records import Record


class Format(NamedTuple):
    """How the records of a published dataset become rows with the names that forms know."""

    name: str
    keys: frozenset[str]
    "It is known by records that have all of these."
    rows: Callable[[Record], Iterator[Record]]
