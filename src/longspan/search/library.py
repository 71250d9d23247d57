"""The user's indexes: one by default, others by name or folder, and what they hold."""

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from longspan.errors import LongspanError, bad
from longspan.hub import DEFAULT, cache_folder
from longspan.search.database import Database, databases
from longspan.search.roots import covered, known_roots

_PLAIN = re.compile(r"\w[\w.-]{0,63}")
"""What may be the name of an index."""


class Summary(NamedTuple):
    """An index at a glance."""

    name: str
    "Its name, or its folder if that is not in the cache."
    folder: str
    files: int = 0
    passages: int = 0
    bytes: int = 0
    model: str | None = None
    read: float = 0.0
    "How much of the text the model has read, from 0 to 1."
    problem: str | None = None
    "Why the index cannot be used."
    adapter: str | None = None
    "The one that is merged into the model, if one was named."


class Record(NamedTuple):
    """A file of an index."""

    file: str
    bytes: int
    passages: int
    read: bool
    "Whether the model has read it; if not, it is found by its words."


def indexes_folder() -> Path:
    """Where the indexes are that have names."""
    return cache_folder() / "indexes"


def model_name(model: str | None) -> str | None:
    """A model's name that means the same wherever it is used: a folder as an absolute path."""
    folder = Path(model).expanduser() if model and model != DEFAULT else None
    return os.path.abspath(folder) if folder and folder.is_dir() else model


def place(index: str | None, model: str | None, adapter: str | None = None) -> Path:
    """The folder of an index; None is the default one, of which there is one for each model and adapter.

    A name is that of an index in the cache; what holds a separator or is a folder that exists is a folder.
    """
    if index is None:
        meant = f"{model_name(model)}" + (f"\0{adapter}" if adapter else "")
        mark = hashlib.sha256(meant.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        plain = model in (None, DEFAULT) and not adapter
        return indexes_folder() / (DEFAULT if plain else f"{DEFAULT}-{mark}")
    folder, named = Path(index).expanduser(), indexes_folder() / index
    is_path = folder.name != index or not index
    if is_path or exists(folder) or (folder.is_dir() and not exists(named)):
        return Path(os.path.abspath(folder))
    if not _PLAIN.fullmatch(index):
        raise bad("--index", "a name of letters, digits, . - and _, or a folder such as ./contracts", index)
    return named


def exists(folder: Path) -> bool:
    """Whether there is an index in a folder."""
    return any(path.is_file() for path in databases(folder))


def names() -> list[str]:
    """The names of all indexes that have some."""
    place = indexes_folder()
    return sorted(folder.name for folder in place.iterdir() if exists(folder)) if place.is_dir() else []


def summaries() -> list[Summary]:
    """All indexes that have names."""
    return [summary(indexes_folder() / name) for name in names()]


def summary(folder: Path) -> Summary:
    """An index at a glance; a damaged one says so."""
    name = folder.name if folder.parent == indexes_folder() else str(folder)
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    try:
        with Catalog(folder) as catalog:
            found = Summary(name, str(folder), *catalog.counts(), size)
            return found._replace(model=catalog.model, read=catalog.share_read(), adapter=catalog.adapter)
    except LongspanError as error:
        return Summary(name, str(folder), bytes=size, problem=str(error))


class Catalog:
    """The records of an index that exists."""

    def __init__(self, folder: Path) -> None:
        self._db = Database(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._db.close()

    @property
    def model(self) -> str | None:
        """The model that the index was built with."""
        return self._db.get("model")

    @property
    def adapter(self) -> str | None:
        """The adapter that is merged into it, if one was named."""
        return self._db.get("adapter")

    def share_read(self, roots: Sequence[Path] = ()) -> float:
        """How much of the text the model has read, from 0 to 1, of all or of what lies in some paths."""
        read, unread = (self._characters(roots, condition) for condition in ("NOT NULL", "NULL"))
        return read / (read + unread) if read + unread else 1.0

    def unread(self, roots: Sequence[Path] = ()) -> int:
        """Characters that the model has not read yet, of all or of what lies in some paths."""
        return self._characters(roots, "NULL")

    def _characters(self, roots: Sequence[Path], condition: str) -> int:
        if not roots:
            return self._count(f"SELECT sum(characters) FROM documents WHERE n_tokens IS {condition}")
        rows = self._db.rows(
            "SELECT path, document, characters FROM files JOIN documents ON documents.id = files.document"
            f" WHERE n_tokens IS {condition}"
        )
        near = {number: size for path, number, size in rows if covered(Path(os.fsdecode(path)), roots)}
        return sum(near.values())

    def counts(self) -> tuple[int, int]:
        """How many files and passages there are."""
        return self._count("SELECT count(*) FROM files"), self._count("SELECT sum(passages) FROM documents")

    def _count(self, query: str) -> int:
        return int(self._db.rows(query)[0][0] or 0)

    def records(self) -> list[Record]:
        """All files, by path."""
        rows = self._db.rows(
            "SELECT path, size, passages, n_tokens IS NOT NULL FROM files"
            " JOIN documents ON documents.id = files.document ORDER BY path"
        )
        return [Record(os.fsdecode(path), size, count, bool(read)) for path, size, count, read in rows]

    def stamps(self) -> dict[Path, tuple[int, int]]:
        """The size and time of change of each file, as they were when it was read."""
        rows = self._db.rows("SELECT path, size, mtime FROM files")
        return {Path(os.fsdecode(path)): (size, mtime) for path, size, mtime in rows}

    def text(self, file: Path) -> str:
        """The whole text of a file as it was read."""
        rows = self._db.rows(
            "SELECT text FROM passages, (SELECT first, documents.passages AS many FROM files"
            " JOIN documents ON documents.id = files.document WHERE path = ?)"
            " WHERE passages.id >= first AND passages.id < first + many ORDER BY passages.id",
            os.fsencode(file),
        )
        return "".join(text for (text,) in rows)

    @property
    def roots(self) -> list[Path]:
        """The files and folders that were added, so that they can be looked through again."""
        return known_roots(self._db)
