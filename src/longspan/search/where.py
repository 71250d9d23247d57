"""Where in its file a person finds a character of a passage."""

from functools import cached_property
from pathlib import Path

import numpy as np

from longspan.search.records import Entry, Row, numbers, unpacked
from longspan.text.files.kinds import AS_THEY_ARE
from longspan.text.files.places import LINE, Places

TABLES = (".xlsx", ".ods", ".csv", ".tsv", ".jsonl", ".log")
"""Files whose lines are rows, each of which says something."""


def is_table(path: Path, kind: str) -> bool:
    """Whether a person looks for rows in a file."""
    return kind == "xlsx" or path.suffix.lower() in TABLES


class Where:
    """The places of a passage's characters, which are counted from the start of its document."""

    def __init__(self, entry: Entry, passage: Row) -> None:
        self._entry, self._passage = entry, passage

    def page(self, offset: int) -> int | None:
        """The page, from 1, where the format has pages."""
        pages = numbers(self._entry.pages)
        return int(np.searchsorted(pages, offset, side="right")) if len(pages) else None

    def line(self, offset: int) -> int | None:
        """The line of the file, from 1, where a person can go to lines of it."""
        if self._entry.kind in AS_THEY_ARE:
            before = self._passage.text[: offset - self._passage.start]
            return self._passage.line + before.count("\n")
        return self._places.number(offset, LINE)

    def label(self, offset: int) -> str:
        """The place in words, such as "page 3"; "" if none is known."""
        line, page = self.line(offset), self.page(offset)
        if line is not None:
            return f"{LINE} {line}"
        return self._places.label(offset) or (f"page {page}" if page else "")

    @cached_property
    def _places(self) -> Places:
        return unpacked(self._entry.places)
