"""An index on disk: SQLite holds texts, words and records, flat files hold vectors, and a kill harms neither.

A document is known by its content, so equal files share one. Its words come first, in the rows from its slot
on: one row for the document, then one for each passage; the vectors of these rows follow when the model has
read it. Vectors are written and flushed before the transaction that refers to them. A removed document
leaves dead rows behind; when there are too many, the live ones move to new files, which one transaction puts
in place of the old. Postings are written in parts, one for each transaction; many parts are joined.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from longspan.search.database import (
    FIRST,
    FLAT,
    NEW_POSTINGS,
    REBUILD,
    TABLES,
    Database,
    Value,
    database_of,
    generation_of,
    outdated,
)
from longspan.search.faults import damaged, unusable
from longspan.search.records import (
    BEGUN,
    COLUMNS,
    Entry,
    File,
    Row,
    Tables,
    checksum,
    names_of,
    passages_crc,
    texts_of,
    vectors_checksum,
)
from longspan.search.words import Postings, postings, unpack
from longspan.shapes import ByteArray, FloatArray

FILES = ("vectors", "tokens")
"""Flat files: the vectors of documents and passages, and those of tokens, as bytes."""
AT_ONCE = 2048
"""Passages that are read at once."""


class Store:
    """The folder of an index, made when something is written to it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.db = folder, Database(folder)

    def clear(self) -> None:
        """Forget everything, the model too; readers at work see either all or nothing."""
        with self.db.transaction():
            for table in TABLES:
                self.db.do(f"DELETE FROM {table}")
            kept = {key: value for key, value in self.db.meta().items() if key in ("id", "changes")}
            generation = str(self.next_generation())
            self.db.do("DELETE FROM meta")
            self.db.put(**FIRST | kept | {"generation": generation})
        self.tidy()
        self.db.shrink()

    def files(self) -> list[File]:
        """All files, by path."""
        rows = self.db.rows("SELECT path, size, mtime, document FROM files ORDER BY path")
        return [File(Path(os.fsdecode(path)), *rest) for path, *rest in rows]

    def entries(self, where: str = "true") -> list[Entry]:
        """All documents, in the order of their rows."""
        rows = self.db.rows(f"SELECT {', '.join(COLUMNS)} FROM documents WHERE {where} ORDER BY slot")
        return [Entry(**dict(zip(COLUMNS, row, strict=True))) for row in rows]

    def pending(self) -> list[Entry]:
        """The documents that the model has not read yet."""
        return [entry for entry in self.entries("n_tokens IS NULL") if not entry.digest.endswith(BEGUN)]

    def passages(self, entry: Entry) -> list[Row]:
        """The passages of a document, which together are its whole text."""
        return list(self.each_passage(entry))

    def each_passage(self, entry: Entry, first: int = 0) -> Iterator[Row]:
        """The same one by one, from a number on: a large document never is in memory at once."""
        select = "SELECT start, line, section, text FROM passages WHERE id >= ? AND id < ? ORDER BY id"
        for begin in range(first, entry.passages, AT_ONCE):
            end = min(begin + AT_ONCE, entry.passages)
            rows = self.db.rows(select, entry.first + begin, entry.first + end)
            if len(rows) != end - begin:
                raise damaged(self.folder, "passages are missing")
            yield from (Row(*row) for row in rows)

    def rows(self, ids: Sequence[int]) -> dict[int, Row]:
        """Some passages by their ids."""
        found: dict[int, Row] = {}
        for begin in range(0, len(ids), 500):
            some = ids[begin : begin + 500]
            marks = ", ".join("?" * len(some))
            select = f"SELECT id, start, line, section, text FROM passages WHERE id IN ({marks})"
            found |= {number: Row(*row) for number, *row in self.db.rows(select, *some)}
        if len(found) != len(set(ids)) or not all(isinstance(row.text, str) for row in found.values()):
            raise damaged(self.folder, "passages are missing, or not text")
        return found

    # Flat files

    def vectors(self) -> FloatArray:
        """(rows, C) float16, mapped copy-on-write: rows without vectors are 0, or missing at the end."""
        return self._mapped("vectors", self.size_of("width"), np.dtype("<f2"))

    def tokens(self) -> ByteArray:
        """(T, B) bytes: all tokens that are kept."""
        return self._mapped("tokens", self.size_of("token_bytes"), np.dtype("u1"))

    def size_of(self, key: str) -> int:
        return self.db.number(key) if self.db.get(key) else 0

    def _mapped(
        self, name: str, width: int, dtype: np.dtype[Any]
    ) -> np.ndarray[tuple[int, int], np.dtype[Any]]:
        path = self.path_of(self.db.number("generation"), name)
        rows = path.stat().st_size // (width * dtype.itemsize) if width and path.is_file() else 0
        return np.memmap(path, dtype, "c", shape=(rows, width)) if rows else np.zeros((0, width), dtype)

    # Words

    def postings(self, stem: str) -> Postings:
        """The rows where a stem occurs, the dead too, and how often."""
        parts = self.db.rows("SELECT slot, data FROM postings WHERE term = ?", stem)
        return self._checked(unpack((slot, data) for slot, data in parts))

    def known(self, terms: Iterable[str]) -> set[str]:
        """Those of some stems that occur."""
        wanted = list(dict.fromkeys(terms))
        rows: list[tuple[str]] = []
        for begin in range(0, len(wanted), 500):
            some = wanted[begin : begin + 500]
            marks = ", ".join("?" * len(some))
            rows += self.db.rows(f"SELECT DISTINCT term FROM postings WHERE term IN ({marks})", *some)
        return {term for (term,) in rows}

    def named(self, stem: str) -> set[int]:
        """The documents in files whose name holds a stem."""
        select = "SELECT document FROM names JOIN files ON files.id = names.file WHERE term = ?"
        return {int(number) for (number,) in self.db.rows(select, stem)}

    def all_postings(self, after: str = "") -> Iterator[tuple[str, Postings]]:
        """All stems behind one, in order, with their postings."""
        parts = self.db.do("SELECT term, slot, data FROM postings WHERE term > ? ORDER BY term, slot", after)
        for stem, own in groupby(parts, itemgetter(0)):
            yield stem, self._checked(unpack((slot, data) for _, slot, data in own))

    def _checked(self, postings: Postings) -> Postings:
        if postings.rows.max(initial=-1) >= self.db.number("rows"):
            raise damaged(self.folder, "a word stands where there is no passage")
        return postings

    # Changes, all of them inside a transaction

    def add(self, group: Sequence[tuple[Entry, Sequence[Row]]]) -> dict[bytes, int]:
        """Add documents with their words; the ids of their digests."""
        packed, counts = postings([text for entry, rows in group for text in texts_of(entry, rows)])
        begin = slot = self.db.number("rows")
        number, first = self.db.next_id("documents"), self.db.next_id("passages")
        ids: dict[bytes, int] = {}
        documents: list[list[Value]] = []
        passages: list[tuple[Value, ...]] = []
        for entry, rows in group:
            own = counts[slot - begin + 1 : slot - begin + 1 + len(rows)]
            lengths = np.maximum(own, 1).astype("<u4").tobytes()
            placed = replace(entry, id=number, passages=len(rows), first=first, slot=slot, lengths=lengths)
            placed = replace(placed, n_tokens=None if rows else 0)
            placed = replace(placed, crc=checksum(placed, passages_crc(rows)))
            documents.append([getattr(placed, name) for name in COLUMNS])
            passages += [(each, *row) for each, row in enumerate(rows, first)]
            ids[entry.digest] = number
            number, slot, first = number + 1, slot + len(rows) + 1, first + len(rows)
        self.db.insert("documents", documents)
        self.db.insert("passages", passages)
        self.db.insert("postings", [(stem, begin, data) for stem, data in sorted(packed.items())])
        self.db.put(rows=str(slot), parts=str(self.db.number("parts") + 1))
        return ids

    def put_files(self, files: Sequence[File]) -> None:
        """Say which document each of some files holds."""
        self.remove(file.path for file in files)
        first = self.db.next_id("files")
        rows, terms = [], []
        for number, (file, own) in enumerate(names_of(files), first):
            rows.append((number, os.fsencode(file.path), file.size, file.mtime, file.document, file.crc))
            terms += [(term, number) for term in own]
        self.db.insert("files", rows)
        self.db.insert("names", terms)

    def remove(self, paths: Iterable[Path]) -> None:
        """Forget files."""
        names = [os.fsencode(path) for path in paths]
        for begin in range(0, len(names), 500):
            some = names[begin : begin + 500]
            select = f"SELECT id FROM files WHERE path IN ({', '.join('?' * len(some))})"
            ids = [number for (number,) in self.db.rows(select, *some)]
            if ids:
                marks = ", ".join("?" * len(ids))
                self.db.do(f"DELETE FROM names WHERE file IN ({marks})", *ids)
                self.db.do(f"DELETE FROM files WHERE id IN ({marks})", *ids)

    def remove_orphans(self) -> int:
        """Forget documents that no file holds any more, and say how many."""
        orphans = self.entries("id NOT IN (SELECT document FROM files)")
        for entry in orphans:
            self.db.do(
                "DELETE FROM passages WHERE id >= ? AND id < ?", entry.first, entry.first + entry.passages
            )
            self.db.do("DELETE FROM documents WHERE id = ?", entry.id)
            self.db.do("DELETE FROM unfinished WHERE document = ?", entry.id)
        return len(orphans)

    def put_vectors(self, group: Sequence[tuple[Entry, Tables]]) -> None:
        """Write what the model made of documents; the entries say what it read of them."""
        first = group[0][1]
        sizes = {"width": first.vectors.shape[1], "token_bytes": first.tokens.shape[1]}
        token_slot, rows = self.size_of("tokens"), self.db.number("rows")
        vectors, tokens, updates = [], [], []
        for entry, own in group:
            if not 0 <= entry.slot < rows:  # else a wrong number would be a place far behind the file's end
                raise damaged(self.folder, f"a document has its rows at {entry.slot}")
            data = own.vectors.astype("<f2").tobytes(), own.tokens.tobytes()
            vectors.append((entry.slot, data[0]))
            tokens.append((token_slot, data[1]))
            ends = own.token_ends.astype("<u4").tobytes() if sizes["token_bytes"] else b""
            crc = vectors_checksum(replace(entry, token_ends=ends), data)
            updates.append((entry.n_tokens, entry.truncated, entry.windows, token_slot, ends, crc, entry.id))
            token_slot += len(own.tokens)
        generation = self.db.number("generation")
        self.write(self.path_of(generation, "vectors"), 2 * sizes["width"], vectors)
        self.write(self.path_of(generation, "tokens"), sizes["token_bytes"], tokens)
        self.db.do_many(
            "UPDATE documents SET n_tokens = ?, truncated = ?, windows = ?, token_slot = ?, token_ends = ?, "
            "vectors_crc = ? WHERE id = ?",
            updates,
        )
        self.db.put(**{key: str(size) for key, size in sizes.items()}, tokens=str(token_slot))

    def write(self, path: Path, width: int, pieces: Iterable[tuple[int, bytes]]) -> None:
        """Write rows of `width` bytes to a flat file, and wait until they are on the disk."""
        if not width:
            return
        try:
            with open(path, "r+b" if path.exists() else "w+b") as out:
                for row, data in pieces:
                    out.seek(row * width)
                    out.write(data)
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise unusable(self.folder, error) from error

    def tidy(self) -> None:
        """Delete what nothing refers to: files of other generations, and what a killed process left."""
        with self.db.transaction(visible=False):
            self.db.do(f"DROP TABLE IF EXISTS {NEW_POSTINGS}")
        generation = self.db.number("generation")
        keep = {self.path_of(generation, name) for name in FILES}
        for path in [*flat_files(self.folder), *outdated(self.folder)]:
            if path not in keep:
                with suppress(OSError):  # in use by another process where that forbids deletion
                    path.unlink(missing_ok=True)

    def sizes(self) -> dict[str, int]:
        """Bytes of the files of the index: its database, the flat files, and an unfinished rebuild."""
        with self.db.snapshot():
            generation = self.db.number("generation")
            paths = {"text and words": database_of(self.folder)}
            paths |= {name: self.path_of(generation, name) for name in FILES}
            sizes = {name: path.stat().st_size for name, path in paths.items() if path.is_file()}
        unfinished = self.folder / REBUILD
        begun = sum(path.stat().st_size for path in unfinished.iterdir()) if unfinished.is_dir() else 0
        return sizes | ({"unfinished rebuild": begun} if begun else {})

    def next_generation(self) -> int:
        """A generation that no flat file belongs to, not even one that a killed process left."""
        known = map(generation_of, flat_files(self.folder))
        return 1 + max([*known, self.db.number("generation")])

    def path_of(self, generation: int, name: str) -> Path:
        return self.folder / f"{name}-{generation}.bin"


def flat_files(folder: Path) -> list[Path]:
    """The flat files in a folder, of any generation and schema."""
    return [path for path in folder.iterdir() if FLAT.fullmatch(path.name)]
