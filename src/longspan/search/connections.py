"""Connections to one SQLite file: each thread at work has its own, to the file that is there now."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from longspan.errors import LongspanError
from longspan.search.faults import unusable

TIMEOUT = 30.0
"""Seconds to wait while another process or thread commits."""
IDLE = 8
"""How many connections wait for the next use at most."""
ATTEMPTS = 100
"""How often the file may be replaced while it is being opened."""
TABLES = "SELECT 1 FROM sqlite_master"

Place = tuple[int, int] | None
"""What a file is known by, whatever its name: device and inode; None if there is no file."""


class Connection(NamedTuple):
    """A connection, and the file that it is to; no place: it is in memory."""

    db: sqlite3.Connection
    path: Path
    place: Place


class Connections:
    """Connections to a file that may not exist yet, or be replaced by another at any time.

    `locate` tells which file it is now. One that takes its place must have another name: SQLite would take
    the journal of one for that of the other, play it back into the wrong file and delete it.
    A file that does not exist is read as one without content, and made when something is written. `create`
    makes its tables, and `check` raises an error if they are not what they should be.
    """

    def __init__(
        self,
        locate: Callable[[], Path],
        create: Callable[[sqlite3.Connection], None],
        check: Callable[[sqlite3.Connection], None],
    ) -> None:
        self._locate, self._create, self._check = locate, create, check
        self._idle: list[Connection] = []
        self._inherited: list[Connection] = []
        self._own = threading.local()
        self._process = os.getpid()
        self._closed = False

    @property
    def current(self) -> sqlite3.Connection | None:
        """The connection of the transaction that this thread is in."""
        found: sqlite3.Connection | None = getattr(self._own, "db", None)
        return found

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        """One state to read, or changes that take effect together; not one inside another."""
        connection = self._begun(write)
        db = self._own.db = connection.db
        try:
            yield db
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        finally:
            self._own.db = None
            self._give_back(connection)

    def close(self) -> None:
        """Close all connections; those at work are closed when they are done."""
        self._closed = True
        while self._idle:
            self._idle.pop().db.close()

    def vacuum(self) -> None:
        """Give unused space back to the disk, if that is possible now."""
        connection = self._taken(self._locate(), write=True)
        with suppress(sqlite3.DatabaseError):  # others read, or the disk is full
            connection.db.execute("VACUUM")
        self._give_back(connection)

    def _begun(self, write: bool) -> Connection:
        """A connection with a transaction that holds a lock: the file is not replaced until it ends."""
        for _ in range(ATTEMPTS):
            path = self._locate()
            try:
                connection = self._taken(path, write)
                try:
                    connection.db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                    connection.db.execute(TABLES).fetchone()  # BEGIN alone takes no lock
                    if self._is_current(connection):
                        return connection
                except BaseException:
                    connection.db.close()
                    raise
                connection.db.close()
            except sqlite3.Error:
                if self._locate() == path:
                    raise
        raise LongspanError(f"`{path}` is replaced again and again. Try again later.")

    def _is_current(self, connection: Connection) -> bool:
        """Whether a connection is to the file that is there now."""
        path, place = self._locate(), connection.place
        return path == connection.path and place in (None, place_of(path))

    def _taken(self, path: Path, write: bool) -> Connection:
        """A connection to a file, an idle one if there is."""
        if self._closed:
            raise LongspanError(f"The index `{path.parent}` was closed. Open it again: Index.open(folder).")
        if self._process != os.getpid():
            # SQLite's connections must neither be used nor closed in a forked process.
            self._inherited, self._idle, self._process = self._idle, [], os.getpid()
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._writable(path) if write else self._readable(path)
            if self._is_current(connection):
                return connection
            connection.db.close()

    def _give_back(self, connection: Connection) -> None:
        spare = self._closed or connection.place is None or len(self._idle) >= IDLE
        if spare or connection.db.in_transaction:
            connection.db.close()
        else:
            self._idle.append(connection)

    def _readable(self, path: Path) -> Connection:
        """A connection to the file, or to an empty one in memory where there is none with tables yet."""
        place = place_of(path)  # before it is opened: then it is never newer than what is opened
        if place is not None:
            connection = Connection(_connected(path), path, place)
            if self._has_tables(connection.db):
                return connection
            connection.db.close()
        memory = _connected(None)
        self._create(memory)
        return Connection(memory, path, None)

    def _writable(self, path: Path) -> Connection:
        """A connection to the file, which is made if it does not exist."""
        if place_of(path) is None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise unusable(path.parent, error) from error
            _connected(path, create=True).close()
        place = place_of(path)
        connection = Connection(_connected(path), path, place)
        if not self._has_tables(connection.db):
            self._create(connection.db)
        return connection

    def _has_tables(self, db: sqlite3.Connection) -> bool:
        """Whether there are any, and they are as they should be."""
        try:
            known = db.execute(TABLES).fetchone() is not None
            if known:
                self._check(db)
        except BaseException:
            db.close()
            raise
        return known


def place_of(path: Path) -> Place:
    """What tells a file from another of the same name."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def _connected(path: Path | None, *, create: bool = False) -> sqlite3.Connection:
    where = ":memory:"
    if path is not None:
        where = f"{Path(os.path.abspath(path)).as_uri()}?mode={'rwc' if create else 'rw'}"
    # One thread after the other may use a connection, but never two at once.
    db = sqlite3.connect(where, timeout=TIMEOUT, isolation_level=None, check_same_thread=False, uri=True)
    db.execute("PRAGMA cache_spill = OFF")  # to write before the end would shut out readers
    db.execute("PRAGMA secure_delete = FAST").close()  # no page is loaded only to be emptied
    return db
