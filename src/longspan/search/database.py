"""The database of an index: one SQLite file, all-or-nothing changes, and errors that say what to do."""

import os
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

from longspan.errors import bad
from longspan.search.connections import Connections
from longspan.search.faults import damaged, guarded
from longspan.search.lock import NAME as LOCK

Value: TypeAlias = str | bytes | int | float | None
"""What a column may hold."""
SCHEMA = "5"
NAMES = re.compile(r"index(-\d+)?\.sqlite")
"""The database, and the one that a rebuild put in its place, with its generation."""
REBUILD = "rebuild"
"""The folder inside of an index in which the next one is built."""
FLAT = re.compile(r"(vectors|tokens|fine|parts)-\d+\.(bin|f16|f32)")
"""The names of flat files, those of earlier schemas too."""
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
    characters INTEGER NOT NULL, pages BLOB NOT NULL, places BLOB NOT NULL, passages INTEGER NOT NULL,
    first INTEGER NOT NULL, slot INTEGER NOT NULL, lengths BLOB NOT NULL, crc INTEGER NOT NULL,
    n_tokens INTEGER, truncated INTEGER NOT NULL, windows INTEGER NOT NULL, token_slot INTEGER NOT NULL,
    token_ends BLOB NOT NULL, vectors_crc INTEGER NOT NULL)""",
    "passages": """CREATE TABLE passages (
    id INTEGER PRIMARY KEY, start INTEGER NOT NULL, line INTEGER NOT NULL, section TEXT NOT NULL,
    text TEXT NOT NULL)""",
    "postings": POSTINGS,
    "unfinished": """CREATE TABLE unfinished (
    document INTEGER PRIMARY KEY, passages INTEGER NOT NULL, n_tokens INTEGER NOT NULL,
    truncated INTEGER NOT NULL, windows INTEGER NOT NULL, token_slot INTEGER NOT NULL,
    token_ends BLOB NOT NULL, vector BLOB NOT NULL, crc INTEGER NOT NULL)""",
}
"""What the database holds beside `meta`, its keys and values."""
FIRST = {"schema": SCHEMA, "rows": "0", "tokens": "0", "generation": "0", "parts": "0", "changes": "0"}
"""What `meta` holds of an index without documents."""
META = "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"


def database_of(folder: Path) -> Path:
    """The database in a folder, or the one to be made."""
    return max(databases(folder), key=generation_of, default=folder / "index.sqlite")


def databases(folder: Path) -> list[Path]:
    """All databases in a folder: that of the index, and older ones that a killed process left."""
    try:
        return [folder / name for name in os.listdir(folder) if NAMES.fullmatch(name)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def outdated(folder: Path) -> list[Path]:
    """Databases whose place another has taken, and their journals."""
    old = sorted(databases(folder), key=generation_of)[:-1]
    return [path.with_name(path.name + end) for path in old for end in ("-journal", "")]


def generation_of(path: Path) -> int:
    """The number in the name of a file of an index; the first database has none."""
    return int((re.findall(r"\d+", path.name) or ["0"])[0])


def is_free(folder: Path) -> bool:
    """Whether a folder is empty, but for what a discarded index may leave behind."""
    names = {path.name for path in folder.iterdir()}
    return not names or (LOCK in names and all(FLAT.fullmatch(name) for name in names - {LOCK, REBUILD}))


def _create(db: sqlite3.Connection) -> None:
    """Make the tables of an index, unless another process has made them."""
    db.execute(f"PRAGMA page_size = {PAGE}")
    db.execute("BEGIN IMMEDIATE")
    try:
        if not db.execute("SELECT 1 FROM sqlite_master").fetchone():
            for statement in (META, *TABLES.values()):
                db.execute(statement)
            is_file = bool(db.execute("PRAGMA database_list").fetchone()[2])
            first = FIRST | ({"id": uuid4().hex} if is_file else {})
            db.executemany("INSERT INTO meta VALUES (?, ?)", [*first.items(), ("crc", meta_crc(first))])
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def meta_crc(values: Mapping[str, str]) -> str:
    """A checksum of what `meta` holds beside it."""
    return str(zlib.crc32(repr(sorted(values.items())).encode("utf-8", "surrogatepass")))


class Database:
    """The database in a folder; nothing is made before something is written. Threads may share it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not databases(folder) and folder.exists() and not (folder.is_dir() and is_free(folder)):
            raise bad("index", "an index, an empty folder or a new one", str(folder))
        self._connections = Connections(partial(database_of, folder), _create, self._check)
        with self.snapshot():  # to know at once whether it can be read
            pass

    def _check(self, db: sqlite3.Connection) -> None:
        """Raise an error for tables of another schema."""
        rows = db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchall()
        if not rows:
            raise damaged(self.folder, "it does not say which schema it has")
        if rows[0][0] != SCHEMA:
            repair = f"Rebuild it: longspan index --index {self.folder} --rebuild"
            raise bad("index", f"of schema {SCHEMA}", rows[0][0], repair)

    @property
    def exists(self) -> bool:
        """Whether there is an index in the folder."""
        return self.get("id") is not None

    def close(self) -> None:
        """Close the file."""
        self._connections.close()

    @contextmanager
    def transaction(self, *, visible: bool = True) -> Iterator[None]:
        """Changes inside take effect together, or not at all; `visible` ones make a new version."""
        if self._connections.current is not None:
            raise RuntimeError("a transaction inside of another")
        with guarded(self.folder), self._connections.transaction(write=True) as db:
            before = db.total_changes
            yield
            if visible and db.total_changes != before:
                self.put(changes=str(self.number("changes") + 1))

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads inside see one state, whatever others write; one may stand inside another."""
        if self._connections.current is not None:
            yield
            return
        with guarded(self.folder), self._connections.transaction(write=False):
            yield

    def shrink(self) -> None:
        """Give unused space back to the disk, if that is possible now."""
        with guarded(self.folder):
            self._connections.vacuum()

    @property
    def _db(self) -> sqlite3.Connection:
        """The connection of the transaction or snapshot that this thread is in."""
        if self._connections.current is None:
            raise RuntimeError("not in a transaction")
        return self._connections.current

    def do(self, statement: str, *values: Value) -> sqlite3.Cursor:
        """Run one statement inside of a transaction, or of a snapshot if it changes nothing."""
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
        with self.snapshot():
            return self._db.execute(query, values).fetchall()

    def get(self, key: str) -> str | None:
        """A value of the `meta` table."""
        rows = self.rows("SELECT value FROM meta WHERE key = ?", key)
        return str(rows[0][0]) if rows else None

    def put(self, **values: str) -> None:
        """Write values to the `meta` table; only inside a transaction."""
        known = self.meta() | values
        self.do_many("REPLACE INTO meta VALUES (?, ?)", [*values.items(), ("crc", meta_crc(known))])

    def meta(self) -> dict[str, str]:
        """All of the `meta` table but its checksum."""
        return {str(key): str(value) for key, value in self.rows("SELECT * FROM meta WHERE key != 'crc'")}

    def number(self, key: str) -> int:
        """A whole number of the `meta` table."""
        text = self.get(key) or ""
        if not re.fullmatch(r"[0-9]{1,12}", text):  # a larger one would be a place that no file has
            raise damaged(self.folder, f"its {key} is missing")
        return int(text)

    @property
    def version(self) -> tuple[str | None, str | None]:
        """Changes whenever this or another process writes what a search may show."""
        with self.snapshot():
            return self.get("id"), self.get("changes")
