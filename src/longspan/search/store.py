"""An index on disk: SQLite holds the records, flat files hold the vectors, and a kill harms neither.

Vectors are appended and flushed before the transaction that refers to them, so a kill leaves only rows that
nothing refers to. A changed or deleted file leaves dead rows behind; when there are too many, the live ones
move to new files, which one transaction puts in place of the old. Postings are written in parts, one for each
transaction; moving rows joins the parts, too.
"""

import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longspan.search.database import NAME, POSTINGS, Database, damaged
from longspan.search.words import MAX_COUNT, Postings, pack, postings, unpack
from longspan.shapes import FloatArray, IntArray

TABLES = ("vectors", "fine")
"""Files of vectors, row by row: those of documents and passages, and those of the parts of passages."""
WASTE = 0.25
"""The share of rows that may be dead before the live ones move."""
PARTS = 128
"""How many parts postings may have before they are joined."""
PART = 1 << 24
"""Rows that one part of the postings can number."""


@dataclass(frozen=True, kw_only=True)
class File:
    """A file of the index: one row of vectors for the document, then one for each passage."""

    id: int = 0
    path: Path
    size: int
    mtime: int
    "When it was last changed, in nanoseconds."
    digest: bytes
    n_tokens: int = 0
    truncated: int = 0
    windows: int = 0
    passages: int = 0
    first: int = 0
    "The id of its first passage."
    slot: int = 0
    "Its first row of vectors."
    crc: int = 0
    lengths: bytes = b""
    "The words of each passage, counted, as <u4."

    @property
    def words(self) -> IntArray:
        """How many words each passage has."""
        return np.frombuffer(self.lengths, "<u4").astype(np.int64)


class Row(NamedTuple):
    """A passage: the characters from `start` to before `stop` of its document."""

    start: int
    stop: int
    page: int | None
    line: int
    text: str


class Store:
    """The folder of an index, created if it does not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.db = folder, Database(folder)

    @staticmethod
    def discard(folder: Path) -> None:
        """Delete the files of an index, damaged or not, and no other files."""
        for path in [folder / NAME, folder / f"{NAME}-journal", *_tables_in(folder)]:
            path.unlink(missing_ok=True)

    def files(self) -> list[File]:
        """All files, in the order of their rows."""
        names = (
            "id, path, size, mtime, digest, n_tokens, truncated, windows, passages, first, slot, crc, lengths"
        )
        keys = names.split(", ")
        return [
            File(**dict(zip(keys, row, strict=True)) | {"path": Path(os.fsdecode(row[1]))})
            for row in self.db.rows(f"SELECT {names} FROM files ORDER BY slot")
        ]

    def vectors(self) -> FloatArray:
        """(rows, C) float16, mapped copy-on-write: all rows, the dead too."""
        return self._table("vectors", self._width)

    def fine(self) -> FloatArray:
        """(rows, K, C) float16, mapped copy-on-write: the K parts of each passage; K may be 0."""
        table = self._table("fine", self._fine * self._width)
        return table.reshape(len(table), self._fine, self._width)

    @property
    def _width(self) -> int:
        return self.db.number("width") if self.db.get("width") else 0

    @property
    def _fine(self) -> int:
        return self.db.number("fine") if self.db.get("fine") else 0

    def _table(self, name: str, width: int) -> FloatArray:
        rows = self.db.number("rows")
        if rows * width == 0:
            return np.zeros((rows, width), np.float16)
        path = self._path(self.db.number("generation"), name)
        if not path.is_file() or path.stat().st_size < rows * width * 2:
            raise damaged(self.folder, f"{path.name} is missing or too short")
        return np.memmap(path, "<f2", "c", shape=(rows, width))

    def postings(self, stem: str) -> Postings:
        """The rows where a stem occurs, the dead too, and how often."""
        parts = self.db.rows("SELECT slot, data FROM postings WHERE term = ?", stem)
        return self._checked(unpack((slot, data) for slot, data in parts))

    def _all_postings(self, table: str = "postings") -> Iterator[tuple[str, Postings]]:
        parts = self.db.do(f"SELECT term, slot, data FROM {table} ORDER BY term, slot")
        for stem, own in groupby(parts, itemgetter(0)):
            yield stem, self._checked(unpack((slot, data) for _, slot, data in own))

    def _checked(self, postings: Postings) -> Postings:
        if postings.rows.max(initial=-1) >= self.db.number("rows"):
            raise damaged(self.folder, "a word stands where there is no passage")
        return postings

    def add(self, group: Sequence[tuple[File, FloatArray, Sequence[Row]]]) -> None:
        """Add files, or replace them by their paths; only inside a transaction.

        Vectors are (1 + P, C) or, with K parts for each passage, (1 + P, 1 + K, C).
        """
        self.remove([file.path for file, _, _ in group])
        begin = slot = self.db.number("rows")
        width = group[0][1].shape[-1]
        halves = [vectors.astype("<f2").reshape(len(vectors), -1, width) for _, vectors, _ in group]
        tables = [(table[:, 0].tobytes(), table[:, 1:].tobytes()) for table in halves]
        fine = halves[0].shape[1] - 1
        for name, columns, data in zip(TABLES, (width, fine * width), zip(*tables, strict=True), strict=True):
            with open(self._path(self.db.number("generation"), name), "ab") as out:
                out.truncate(slot * columns * 2)  # what a killed process may have left
                out.write(b"".join(data))
                out.flush()
                os.fsync(out.fileno())
        texts = [text for _, _, rows in group for text in ("", *(row.text for row in rows))]
        packed, lengths = postings(texts)
        for (file, vectors, rows), data in zip(group, tables, strict=True):
            words = lengths[slot - begin + 1 : slot - begin + len(vectors)].astype("<u4").tobytes()
            self._add(file, rows, (slot, _crc(b"".join(data), words, [row.text for row in rows]), words))
            slot += len(vectors)
        values = [(stem, begin, data) for stem, data in sorted(packed.items())]
        self.db.do_many("INSERT INTO postings VALUES (?, ?, ?)", values)
        sizes = {"rows": str(slot), "width": str(width), "fine": str(fine)}
        self.db.put(**sizes, parts=str(self.db.number("parts") + 1))

    def _add(self, file: File, passages: Sequence[Row], place: tuple[int, int, bytes]) -> None:
        first = self.db.rows("SELECT coalesce(max(id), 0) + 1 FROM passages")[0][0]
        values = (file.size, file.mtime, file.digest, file.n_tokens, file.truncated, file.windows)
        self.db.do(
            "INSERT INTO files VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(os.fsencode(file.path), *values, len(passages), first, *place),
        )
        rows = [(first + i, *row) for i, row in enumerate(passages)]
        self.db.do_many("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?)", rows)

    def remove(self, paths: Sequence[Path]) -> None:
        """Remove files; only inside a transaction."""
        for path in paths:
            name = os.fsencode(path)
            for number, first, count in self.db.rows(
                "SELECT id, first, passages FROM files WHERE path = ?", name
            ):
                self.db.do("DELETE FROM passages WHERE id >= ? AND id < ?", first, first + count)
                self.db.do("DELETE FROM files WHERE id = ?", number)

    def move(self, old: Path, new: File) -> None:
        """Give the file at `old` the path, size and time of `new`; only inside a transaction."""
        self.db.do(
            "UPDATE files SET path = ?, size = ?, mtime = ? WHERE path = ?",
            *(os.fsencode(new.path), new.size, new.mtime, os.fsencode(old)),
        )

    def compact(self) -> None:
        """Move the live rows together if too many are dead, and delete files that nothing refers to."""
        with self.db.transaction():
            files, rows, generation = self.files(), self.db.number("rows"), self.db.number("generation")
            live = sum(file.passages + 1 for file in files)
            if rows - live > WASTE * rows or self.db.number("parts") > PARTS:
                tables, generation = (self.vectors(), self.fine()), generation + 1
                kept = np.concatenate([_rows(file) for file in files]) if files else np.zeros(0, np.int64)
                place = np.full(rows, -1)
                place[kept] = np.arange(live)
                for name, table in zip(TABLES, tables, strict=True):
                    with open(self._path(generation, name), "wb") as out:
                        for file in files:
                            out.write(table[_rows(file)].tobytes())
                        out.flush()
                        os.fsync(out.fileno())
                for file in files:
                    self.db.do("UPDATE files SET slot = ? WHERE id = ?", int(place[file.slot]), file.id)
                self._join(place)
                self.db.put(rows=str(live), generation=str(generation), parts="1")
            keep = {self._path(generation, name) for name in TABLES}
        for path in _tables_in(self.folder):
            if path not in keep:
                with suppress(OSError):  # mapped by another process where that forbids deletion
                    path.unlink()

    def _join(self, place: IntArray) -> None:
        """Join the parts of the postings; `place` is the new row of each old one, -1 for the dead."""
        self.db.do("ALTER TABLE postings RENAME TO parts")
        self.db.do(POSTINGS)
        for stem, (old, counts) in self._all_postings("parts"):
            rows, counts = place[old], counts[place[old] >= 0]
            rows = rows[rows >= 0]
            for base in range(0, len(place), PART):
                own = rows // PART == base // PART
                if own.any():
                    data = pack(rows[own] - base, counts[own])
                    self.db.do("INSERT INTO postings VALUES (?, ?, ?)", stem, base, data)
        self.db.do("DROP TABLE parts")

    def verify(self) -> None:
        """Compare everything with its checksums; damage is an error."""
        if self.db.rows("PRAGMA integrity_check") != [("ok",)]:
            raise damaged(self.folder, f"{NAME} fails SQLite's integrity check")
        vectors, fine, lengths = self.vectors(), self.fine(), np.zeros(self.db.number("rows"), np.int64)
        for file in self.files():
            own, last = slice(file.slot, file.slot + file.passages + 1), file.first + file.passages
            texts = self.db.rows(
                "SELECT text FROM passages WHERE id >= ? AND id < ? ORDER BY id", file.first, last
            )
            held = vectors[own].tobytes() + fine[own].tobytes()
            if _crc(held, file.lengths, [text for (text,) in texts]) != file.crc:
                raise damaged(self.folder, f"what it holds of {file.path} has changed")
            lengths[own][1:] = file.words
        sums = np.zeros_like(lengths)
        for _, (rows, counts) in self._all_postings():
            sums[rows] += counts
        if (sums < np.minimum(lengths, MAX_COUNT)).any() or (sums > lengths)[lengths > 0].any():
            raise damaged(self.folder, "its table of words is not whole")

    def _path(self, generation: int, name: str) -> Path:
        return self.folder / f"{name}-{generation}.f16"


def _tables_in(folder: Path) -> list[Path]:
    return [path for name in TABLES for path in folder.glob(f"{name}-*.f16")]


def _rows(file: File) -> IntArray:
    """The rows of a file: the document's, then those of its passages."""
    return np.arange(file.slot, file.slot + file.passages + 1)


def _crc(vectors: bytes, lengths: bytes, texts: Sequence[str]) -> int:
    return zlib.crc32("\0".join(texts).encode(), zlib.crc32(lengths, zlib.crc32(vectors)))


def passage_rows(files: Sequence[File]) -> IntArray:
    """The rows of all passages of some files."""
    parts = [np.arange(file.slot + 1, file.slot + 1 + file.passages) for file in files]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
