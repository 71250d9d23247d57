"""The database of an index: one SQLite file, all-or-nothing changes, and errors that say what to do."""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from longspan.errors import CheckpointError, LongspanError, bad
from longspan.search.lock import NAME as LOCK

Value: TypeAlias = str | bytes | int | float | None
"""What a column may hold."""
SCHEMA = "5"
NAME = "index.sqlite"
FLAT = re.compile(r"(vectors|tokens|fine|parts)-\d+\.(bin|f16|f32)")
"""The names of flat files, those of earlier schemas too."""
TIMEOUT = 30.0
"""Seconds to wait while another process writes."""
PAGE = 1 << 14
"""Bytes of a page of the database: large ones suit postings."""
VARIABLES = 8192
"""The most values that one statement inserts."""
POSTINGS = """CREATE TABLE postings (
    term TEXT NOT NULL, slot INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (term, slot)) WITHOUT ROWID"""
NEW_POSTINGS = "new_postings"
"""The table in which they are joined."""
TABLES = {
    "files": """CREATE TABLE files (
    id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, mtime INTEGER NOT NULL,
    document INTEGER NOT NULL, crc INTEGER NOT NULL)""",
    "names": """CREATE TABLE names (
    term TEXT NOT NULL, file INTEGER NOT NULL, PRIMARY KEY (term, file)) WITHOUT ROWID""",
    "documents": """CREATE TABLE documents (
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, title TEXT NOT NULL,
    characters INTEGER NOT NULL, pages BLOB NOT NULL, passages INTEGER NOT NULL, first INTEGER NOT NULL,
    slot INTEGER NOT NULL, lengths BLOB NOT NULL, crc INTEGER NOT NULL, n_tokens INTEGER,
    truncated INTEGER NOT NULL, windows INTEGER NOT NULL, token_slot INTEGER NOT NULL,
    token_ends BLOB NOT NULL, vectors_crc INTEGER NOT NULL)""",
    "passages": """CREATE TABLE passages (
    id INTEGER PRIMARY KEY, start INTEGER NOT NULL, line INTEGER NOT NULL, section TEXT NOT NULL,
    text TEXT NOT NULL)""",
    "postings": POSTINGS,
    "unfinished": """CREATE TABLE unfinished (
    document INTEGER PRIMARY KEY, passages INTEGER NOT NULL, n_tokens INTEGER NOT NULL,
    truncated INTEGER NOT NULL, windows INTEGER NOT NULL, token_slot INTEGER NOT NULL,
    token_ends BLOB NOT NULL, vector BLOB NOT NULL)""",
}
"""What the database holds beside `meta`, its keys and values."""
META = "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"


def _is_free(folder: Path) -> bool:
    """Whether a folder is empty, but for what a discarded index may leave behind."""
    names = {path.name for path in folder.iterdir()}
    return not names or (LOCK in names and all(FLAT.fullmatch(name) for name in names - {LOCK}))


def damaged(folder: Path, reason: str) -> CheckpointError:
    """The error for an index that can no longer be trusted."""
    repair = f"Rebuild it: longspan index PATH... --index {folder} --rebuild"
    return CheckpointError(f"The index `{folder}` is damaged: {reason}. {repair}")


def unusable(folder: Path, reason: object, *, full: bool = False) -> LongspanError:
    """The error for an index that cannot be read or written, though nothing is wrong with it."""
    repair = " Make room on the disk and run this again: what was done is kept." if full else ""
    return LongspanError(f"The index `{folder}` cannot be used: {reason}.{repair}")


class Database:
    """The database in a folder; both are created if they do not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / NAME
        fresh = not path.exists()
        if fresh and folder.exists() and not (folder.is_dir() and _is_free(folder)):
            raise bad("index", "an index, an empty folder or a new one", str(folder))
        folder.mkdir(parents=True, exist_ok=True)
        with self._guarded():
            self._db = sqlite3.connect(path, timeout=TIMEOUT, isolation_level=None)
            self.do("PRAGMA cache_spill = OFF")  # to write before the end would shut out readers
            self.rows("PRAGMA secure_delete = FAST")  # no page is loaded only to be emptied
            if fresh or not self.rows("SELECT 1 FROM sqlite_master"):  # killed within the first transaction
                self.do(f"PRAGMA page_size = {PAGE}")
                self._create()
            self._check_version()

    def _create(self) -> None:
        with self.transaction():
            if not self.rows("SELECT 1 FROM sqlite_master"):
                for statement in (META, *TABLES.values()):
                    self.do(statement)
                self.put(schema=SCHEMA, rows="0", tokens="0", generation="0", parts="0")

    def _check_version(self) -> None:
        schema = self.get("schema")
        if schema is None:
            raise damaged(self.folder, "it does not say which schema it has")
        if schema != SCHEMA:
            raise bad("index", f"of schema {SCHEMA}", schema, "Rebuild it with --rebuild.")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """SQLite's errors as ours: in use, not usable, or damaged."""
        try:
            yield
        except sqlite3.ProgrammingError as error:
            where = f"The index `{self.folder}` was closed, or opened by another thread"
            raise LongspanError(f"{where} ({error}). Open it in each thread: Index.open(folder).") from error
        except sqlite3.DatabaseError as error:
            name = getattr(error, "sqlite_errorname", "")
            if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise LongspanError(f"The index `{self.folder}` is in use by another process.") from error
            if name.startswith(("SQLITE_READONLY", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN")):
                raise unusable(self.folder, error, full=name == "SQLITE_FULL") from error
            raise damaged(self.folder, str(error)) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Changes inside take effect together, or not at all."""
        with self._guarded():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def shrink(self) -> None:
        """Give unused space back to the disk, if that is possible now."""
        with suppress(sqlite3.DatabaseError):  # others read, or the disk is full
            self._db.execute("VACUUM")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads inside see one state, whatever other processes write; one may stand inside another."""
        with self._guarded():
            if self._db.in_transaction:
                yield
                return
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.execute("COMMIT")

    @contextmanager
    def sound(self) -> Iterator[None]:
        """Report wrong types or sizes of what is read inside as damage: nothing else can have caused them."""
        try:
            yield
        except LongspanError:
            raise
        except (TypeError, ValueError, LookupError, OverflowError) as error:
            raise damaged(self.folder, f"its content makes no sense ({error})") from error

    def do(self, statement: str, *values: Value) -> sqlite3.Cursor:
        """Run one statement; one that changes something, only inside a transaction."""
        return self._db.execute(statement, values)

    def do_many(self, statement: str, values: Iterable[Sequence[Value]]) -> None:
        """Run one statement for each row of values; only inside a transaction."""
        self._db.executemany(statement, values)

    def insert(self, table: str, rows: Sequence[Sequence[Value]]) -> None:
        """Insert rows, many by each statement: other threads run while SQLite is at work, not between."""
        begin = 0
        while begin < len(rows):
            width = len(rows[begin])
            most = min(VARIABLES, self._db.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)) // width
            # Powers of two: the statements are few, and prepared once.
            count = 1 << (min(most, len(rows) - begin).bit_length() - 1)
            marks = ", ".join([f"({', '.join('?' * width)})"] * count)
            some = rows[begin : begin + count]
            self.do(f"INSERT INTO {table} VALUES {marks}", *chain.from_iterable(some))
            begin += count

    def next_id(self, table: str) -> int:
        """The id of the next row of a table."""
        return int(self.rows(f"SELECT coalesce(max(id), 0) + 1 FROM {table}")[0][0])

    def rows(self, query: str, *values: Value) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self._guarded():
            return self._db.execute(query, values).fetchall()

    def get(self, key: str) -> str | None:
        """A value of the `meta` table."""
        rows = self.rows("SELECT value FROM meta WHERE key = ?", key)
        return str(rows[0][0]) if rows else None

    def put(self, **values: str) -> None:
        """Write values to the `meta` table."""
        self.do_many("REPLACE INTO meta VALUES (?, ?)", values.items())

    def number(self, key: str) -> int:
        """A whole number of the `meta` table."""
        try:
            return int(self.get(key) or "")
        except ValueError:
            raise damaged(self.folder, f"its {key} is missing") from None

    @property
    def version(self) -> tuple[int, int]:
        """Changes whenever this or another process writes."""
        return self.rows("PRAGMA data_version")[0][0], self._db.total_changes
