"""Rebuilding an index beside the old one, whose place it takes in one step, when it is complete."""

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from longspan._version import __version__
from longspan.errors import LongspanError
from longspan.search.connections import TIMEOUT
from longspan.search.database import REBUILD, database_of, databases, generation_of
from longspan.search.faults import Full, guarded, unusable
from longspan.search.index import Index
from longspan.search.lock import NAME as LOCK
from longspan.search.lock import writing
from longspan.search.own_model import UNNAMED
from longspan.search.roots import covered
from longspan.search.store import FILES, Store, flat_files

if TYPE_CHECKING:
    from longspan.reader import Reader


@contextmanager
def rebuilding(
    folder: Path,
    model: "str | Path | Reader | None" = None,
    *,
    tokens: str | None = None,
    adapter: str | None = None,
) -> Iterator[Index]:
    """A new index, which takes the place of the one in `folder` when the block ends without an error.

    Until then the old one can be searched, but not changed, and a kill keeps it. It may be damaged, or of
    any schema. What is built of the new one is kept by a kill or an error, too, unless the disk is full: the
    next rebuild by the same version with the same model goes on with it.
    """
    place = folder / REBUILD
    with writing(folder):
        try:
            with _begun(place, model, tokens, adapter) as index:
                yield index
            _put_in_place(folder, place)
        except Full:
            _discard(place)
            raise


class Known(NamedTuple):
    """What an index of any schema says of itself; nothing, if it is damaged."""

    paths: list[Path]
    "What it was filled with: files and folders."
    files: list[Path]
    model: str | None
    tokens: str | None
    adapter: str | None


def known(folder: Path) -> Known:
    """What can be read of an index, though it may be damaged or of another schema."""
    path = database_of(folder)
    uri = f"{Path(os.path.abspath(path)).as_uri()}?mode=rw"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=TIMEOUT)) as db:
            meta = dict(db.execute("SELECT key, value FROM meta"))
            files = [
                Path(os.fsdecode(path)) for (path,) in db.execute("SELECT path FROM files ORDER BY path")
            ]
        roots = [Path(root) for root in json.loads(meta.get("roots") or "[]")]
    except (sqlite3.Error, ValueError, TypeError):
        return known(folder) if database_of(folder) != path else Known([], [], None, None, None)
    model, tokens = meta.get("model"), meta.get("token_kind")
    paths = roots + [file for file in files if not covered(file, roots)]
    return Known(paths, files, None if model == UNNAMED else model, tokens, meta.get("adapter"))


def space(folder: Path) -> tuple[int, int]:
    """Bytes that a rebuild needs beside the old index, if it becomes as large, and those that are free."""
    size = sum(path.stat().st_size for path in [*flat_files(folder), database_of(folder)] if path.is_file())
    return size, shutil.disk_usage(folder).free


@contextmanager
def _begun(
    place: Path, model: "str | Path | Reader | None", tokens: str | None, adapter: str | None
) -> Iterator[Index]:
    """The index that is being built, continued if it was begun in the same way."""
    named = model is None or isinstance(model, str | Path)
    mark = json.dumps([__version__, str(model) if named else UNNAMED, tokens, adapter])
    if not (named and _is_begun(place, mark)):
        _discard(place)
    with Index.open(place, model, tokens=tokens, adapter=adapter) as index:
        if index._store.db.get("rebuild") != mark:
            with index._store.db.transaction():
                index._store.db.put(rebuild=mark)
        yield index


def _is_begun(place: Path, mark: str) -> bool:
    """Whether there is a whole index that was begun in the same way."""
    if not databases(place):
        return False
    try:
        with Index.open(place) as index:
            index.verify()
            return index._store.db.get("rebuild") == mark
    except LongspanError:
        return False


def _discard(place: Path) -> None:
    """Delete what was built of an index, and no other files."""
    if place.is_dir():
        known = databases(place)
        journals = [path.with_name(f"{path.name}-journal") for path in known]
        for path in [*flat_files(place), *journals, *known, place / LOCK]:
            path.unlink(missing_ok=True)
        with suppress(OSError):  # it holds something else
            place.rmdir()


def _put_in_place(folder: Path, place: Path) -> None:
    """Let a complete index take the place of the old one while nobody reads that; then delete that.

    Its database has a new name. Under the old one a process that still has the old database open, but does
    not use it now, would take the new one's journal for its own.
    """
    with closing_store(place) as fresh, _alone(folder):
        before = [(name, fresh.path_of(fresh.db.number("generation"), name)) for name in FILES]
        old = map(generation_of, [*flat_files(folder), *databases(folder)])
        generation = max(fresh.next_generation(), 1 + max(old, default=0))
        with fresh.db.transaction():
            fresh.db.do("DELETE FROM meta WHERE key = 'rebuild'")  # from here on it cannot be continued
            fresh.db.put(generation=str(generation))
        fresh.db.close()
        try:
            for name, path in before:
                if path.exists():
                    os.replace(path, folder / f"{name}-{generation}.bin")
            os.replace(database_of(place), folder / f"index-{generation}.sqlite")
            _flush(folder)
        except OSError as error:
            raise unusable(folder, error) from error
    with closing_store(folder) as store:
        store.tidy()
    _discard(place)


@contextmanager
def closing_store(folder: Path) -> Iterator[Store]:
    """The store in a folder, closed in the end."""
    store = Store(folder)
    try:
        yield store
    finally:
        store.db.close()


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until nobody reads the old database, and let nobody begin to; a damaged one has no readers."""
    old = database_of(folder)
    if not old.is_file():
        yield
        return
    with (
        guarded(folder),
        closing(sqlite3.connect(old, timeout=TIMEOUT, isolation_level=None)) as db,
    ):
        try:
            db.execute("BEGIN EXCLUSIVE")  # which also undoes what a killed process left half done
        except sqlite3.DatabaseError as error:
            if str(getattr(error, "sqlite_errorname", "")).startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise
        yield


def _flush(folder: Path) -> None:
    """Wait until the names of files are on the disk."""
    if os.name != "nt":
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
