"""An index on disk: SQLite says what there is, one flat file holds the vectors, and a kill harms neither.

Vectors are appended and flushed before the transaction that names them, so rows that no transaction names are
only waste. A changed or deleted file leaves its rows behind; when they are too many, the live ones move to a
new file, which one transaction puts in the old one's place.
"""

import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from longspan.errors import LongspanError, bad
from longspan.search.results import damaged
from longspan.shapes import FloatArray, IntArray

SCHEMA = "1"
DATABASE = "index.sqlite"
PATIENCE = 30.0
"""Seconds to wait for another process that writes."""
WASTE = 0.25
"""The part of the rows that may be dead before the living move."""
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
    id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, mtime INTEGER NOT NULL,
    digest BLOB NOT NULL, n_tokens INTEGER NOT NULL, truncated INTEGER NOT NULL, windows INTEGER NOT NULL,
    passages INTEGER NOT NULL, first INTEGER NOT NULL, slot INTEGER NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE passages (
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL,
    page INTEGER, line INTEGER NOT NULL);
CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = "porter unicode61 remove_diacritics 2");
"""


@dataclass(frozen=True, kw_only=True)
class File:
    """A file of the index: one row of vectors for the document, then one for each passage."""

    id: int = 0
    path: Path
    size: int
    mtime: int
    "Of the last change, in nanoseconds."
    digest: bytes
    n_tokens: int = 0
    truncated: int = 0
    windows: int = 0
    passages: int = 0
    first: int = 0
    "The number of its first passage."
    slot: int = 0
    "Where its rows begin."
    crc: int = 0


class Row(NamedTuple):
    """A passage: characters `start` to `stop` of its document."""

    start: int
    stop: int
    page: int | None
    line: int
    text: str


class Store:
    """The folder of an index, made if it does not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / DATABASE
        fresh = not path.exists()
        if fresh and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise bad("index", "an index, an empty folder or a new one", str(folder))
        folder.mkdir(parents=True, exist_ok=True)
        with self._guarded():
            self._db = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
            if fresh or not path.stat().st_size:  # empty: killed before the first transaction
                self._create()
            self._check_version()

    @staticmethod
    def discard(folder: Path) -> None:
        """Delete the files of an index, damaged or not, and nothing else."""
        for path in [folder / DATABASE, folder / f"{DATABASE}-journal", *folder.glob("vectors-*.f32")]:
            path.unlink(missing_ok=True)

    def _create(self) -> None:
        with self.transaction():
            if not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in _TABLES.split(";\n"):
                    self._db.execute(statement)
                self.put(schema=SCHEMA, rows="0", generation="0")

    def _check_version(self) -> None:
        found = self.get("schema")
        if found is None:
            raise damaged(self.folder, "it does not say which schema it has")
        if found != SCHEMA:
            raise bad("index", f"of schema {SCHEMA}", found, "Rebuild it with --rebuild.")

    def close(self) -> None:
        """Let go of the files."""
        self._db.close()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """SQLite's errors as ours: busy, impossible, or damaged."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise LongspanError(f"The index `{self.folder}` is in use by another process.") from error
            if name.startswith(("SQLITE_READONLY", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN")):
                raise LongspanError(f"The index `{self.folder}` cannot be used: {error}.") from error
            if "fts5" in str(error):
                raise LongspanError("This Python's SQLite has no FTS5, which the index needs.") from error
            raise damaged(self.folder, str(error)) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        with self._guarded():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def rows(self, query: str, *values: Any) -> list[Any]:
        """All rows of a query."""
        with self._guarded():
            return self._db.execute(query, values).fetchall()

    def get(self, key: str) -> str | None:
        """A noted value."""
        found = self.rows("SELECT value FROM meta WHERE key = ?", key)
        return str(found[0][0]) if found else None

    def put(self, **values: str) -> None:
        """Note some values."""
        self._db.executemany("REPLACE INTO meta VALUES (?, ?)", values.items())

    def number(self, key: str) -> int:
        """A noted number."""
        try:
            return int(self.get(key) or "")
        except ValueError:
            raise damaged(self.folder, f"its {key} is missing") from None

    @property
    def version(self) -> tuple[int, int]:
        """Changes whenever this or another process writes."""
        return self.rows("PRAGMA data_version")[0][0], self._db.total_changes

    def files(self) -> list[File]:
        """All files, in the order of their rows."""
        names = "id, path, size, mtime, digest, n_tokens, truncated, windows, passages, first, slot, crc"
        keys = names.split(", ")
        return [
            File(**dict(zip(keys, row, strict=True)) | {"path": Path(os.fsdecode(row[1]))})
            for row in self.rows(f"SELECT {names} FROM files ORDER BY slot")
        ]

    def vectors(self) -> FloatArray:
        """(rows, C) float32, mapped: the living and the dead; what is written to it stays in memory."""
        rows, width = self.number("rows"), self.number("width") if self.get("width") else 0
        if rows == 0:
            return np.zeros((0, width), np.float32)
        path = self._path(self.number("generation"))
        if not path.is_file() or path.stat().st_size < rows * width * 4:
            raise damaged(self.folder, f"{path.name} is missing or too short")
        return np.memmap(path, np.float32, "c", shape=(rows, width))

    def add(self, file: File, vectors: FloatArray, passages: Sequence[Row]) -> None:
        """Put a file in, in place of what was at its path; only inside a transaction."""
        self.remove([file.path])
        slot = self.number("rows")
        width = vectors.shape[1]
        data = np.ascontiguousarray(vectors, "<f4").tobytes()
        with open(self._path(self.number("generation")), "ab") as out:
            out.truncate(slot * width * 4)  # what a killed process may have left
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        first = self.rows("SELECT coalesce(max(id), 0) + 1 FROM passages")[0][0]
        values = (file.size, file.mtime, file.digest, file.n_tokens, file.truncated, file.windows)
        added = self._db.execute(
            "INSERT INTO files VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (os.fsencode(file.path), *values, len(passages), first, slot, zlib.crc32(data)),
        )
        self._db.executemany(
            "INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?)",
            [(first + i, added.lastrowid, *row[:4]) for i, row in enumerate(passages)],
        )
        texts = [(first + i, row.text) for i, row in enumerate(passages)]
        self._db.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", texts)
        self.put(rows=str(slot + len(vectors)), width=str(width))

    def remove(self, paths: Sequence[Path]) -> None:
        """Take files out; only inside a transaction."""
        for path in paths:
            name = os.fsencode(path)
            for number, first, count in self.rows(
                "SELECT id, first, passages FROM files WHERE path = ?", name
            ):
                self._db.execute("DELETE FROM words WHERE rowid >= ? AND rowid < ?", (first, first + count))
                self._db.execute("DELETE FROM passages WHERE id >= ? AND id < ?", (first, first + count))
                self._db.execute("DELETE FROM files WHERE id = ?", (number,))

    def move(self, old: Path, new: File) -> None:
        """The file at `old` is now known by the path, size and time of `new`; only inside a transaction."""
        self._db.execute(
            "UPDATE files SET path = ?, size = ?, mtime = ? WHERE path = ?",
            (os.fsencode(new.path), new.size, new.mtime, os.fsencode(old)),
        )

    def compact(self) -> None:
        """Move the living rows together if too many are dead, and delete what nothing refers to."""
        with self.transaction():
            files, rows, generation = self.files(), self.number("rows"), self.number("generation")
            live = sum(file.passages + 1 for file in files)
            if rows - live > WASTE * rows:
                vectors, generation = self.vectors(), generation + 1
                with open(self._path(generation), "wb") as out:
                    here = 0
                    for file in files:
                        out.write(vectors[file.slot : file.slot + file.passages + 1].tobytes())
                        self._db.execute("UPDATE files SET slot = ? WHERE id = ?", (here, file.id))
                        here += file.passages + 1
                    out.flush()
                    os.fsync(out.fileno())
                self.put(rows=str(live), generation=str(generation))
            keep = self._path(generation)
        for path in self.folder.glob("vectors-*.f32"):
            if path != keep:
                with suppress(OSError):  # mapped by another process where that forbids deletion
                    path.unlink()

    def verify(self) -> None:
        """Compare everything with its checksums; damage is an error."""
        if self.rows("PRAGMA integrity_check") != [("ok",)]:
            raise damaged(self.folder, f"{DATABASE} fails SQLite's integrity check")
        vectors, count = self.vectors(), 0
        for file in self.files():
            rows = vectors[file.slot : file.slot + file.passages + 1]
            if len(rows) != file.passages + 1 or zlib.crc32(rows.tobytes()) != file.crc:
                raise damaged(self.folder, f"the vectors of {file.path} have changed")
            count += file.passages
        for table in ("passages", "words"):
            if self.rows(f"SELECT count(*) FROM {table}") != [(count,)]:
                raise damaged(self.folder, f"its table of {table} is not whole")

    def _path(self, generation: int) -> Path:
        return self.folder / f"vectors-{generation}.f32"


def slots_of(files: Sequence[File]) -> IntArray:
    """The rows of all passages of some files."""
    parts = [np.arange(file.slot + 1, file.slot + 1 + file.passages) for file in files]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
