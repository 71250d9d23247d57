"""Files of tagged tokens as in CoNLL-2003: a token a line, its tag last, blank lines between sentences."""

from collections.abc import Iterator
from pathlib import Path

from longspan.datasets.files import lines
from longspan.datasets.records import Place, Record
from longspan.errors import unreadable

DOCUMENT = "-DOCSTART-"


def tokens(path: Path) -> Iterator[Record]:
    """A record for each document, or for each sentence of a file that does not say where documents begin."""
    place, words, tags, ends = Place(path, 1), list[str](), list[str](), list[int]()
    whole, width = False, 0

    def record() -> Iterator[Record]:
        if words:
            bounds = sorted({*ends, len(words)})
            yield Record({"tokens": list(words), "tags": list(tags), "sentence_ends": bounds}, place)
        for each in (words, tags, ends):
            each.clear()

    for number, line in lines(path):
        columns = line.split()
        if columns and columns[0] == DOCUMENT:
            yield from record()
            whole = True
        elif not columns and whole:
            ends += [len(words)] if words else []
        elif not columns:
            yield from record()
        else:
            width = width or len(columns)
            if len(columns) != width or width < 2:
                there = f"line {number} has {len(columns)} columns, where others have {width}"
                reason = there if width > 1 else f"line {number} has no tag behind its token"
                raise unreadable(path, reason, "Each line has a token, and its tag last.")
            place = place if words else Place(path, number)
            words.append(columns[0])
            tags.append(columns[-1])
    yield from record()
