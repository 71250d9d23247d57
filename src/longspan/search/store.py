"""An index on disk: SQLite holds texts, words and records, flat files hold vectors, and a kill harms neither.

A document is known by its content, so equal files share one. Its words come first, in the rows from its slot
on: one row for the document, then one for each passage; the vectors of these rows follow when the model has
read it. Vectors are written and flushed before the transaction that refers to them. A removed document
leaves dead rows behind; when there are too many, the live ones move to new files, which one transaction puts
in place of the old. Postings are written in parts, one for each transaction; moving rows joins the parts.
"""

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from longspan.search.database import NAME, POSTINGS, TABLES, Database, damaged
from longspan.search.words import MAX_COUNT, Postings, pack, postings, stems, unpack, words_of
from longspan.shapes import ByteArray, FloatArray, IntArray

FILES = ("vectors", "tokens")
"""Flat files: the vectors of documents and passages, and those of tokens, as bytes."""
WASTE = 0.25
"""The share of rows that may be dead before the live ones move."""
PARTS = 128
"""How many parts postings may have before they are joined."""
PART = 1 << 24
"""Rows that one part of the postings can number."""


class File(NamedTuple):
    """A file, and the document that it holds."""

    path: Path
    size: int
    mtime: int
    "When it was last changed, in nanoseconds."
    document: int = 0


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A document of the index; n_tokens is None until the model has read it."""

    id: int = 0
    digest: bytes
    kind: str = "text"
    title: str = ""
    characters: int = 0
    pages: bytes = b""
    "Where its pages begin, as <u4."
    passages: int = 0
    first: int = 0
    "The id of its first passage."
    slot: int = 0
    "Its first row."
    lengths: bytes = b""
    "The words of each passage, counted, as <u4."
    crc: int = 0
    n_tokens: int | None = None
    truncated: int = 0
    windows: int = 0
    token_slot: int = 0
    token_ends: bytes = b""
    "Where the tokens of each passage end, counted from token_slot, as <u4; empty if none are kept."
    vectors_crc: int = 0

    @property
    def rows(self) -> IntArray:
        """Its rows: the document's, then those of its passages."""
        return np.arange(self.slot, self.slot + self.passages + 1)

    @property
    def tokens(self) -> int:
        """How many tokens have vectors of their own."""
        return int(numbers(self.token_ends)[-1]) if self.token_ends else 0


COLUMNS = tuple(field.name for field in fields(Entry))


class Row(NamedTuple):
    """A passage: the characters from `start` to where the next one starts, white space included."""

    start: int
    line: int
    section: str
    "The headings that it stands under, one on each line."
    text: str


class Tables(NamedTuple):
    """What the model makes of a document."""

    vectors: FloatArray
    "(1 + P, C): the document, then its passages."
    tokens: ByteArray
    "(T, B): tokens as bytes; B may be 0."
    token_ends: IntArray
    "(P,): where the tokens of each passage end."


class Store:
    """The folder of an index, created if it does not exist."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.db = folder, Database(folder)

    @staticmethod
    def discard(folder: Path) -> None:
        """Delete the files of an index, damaged or not, and no other files."""
        for path in [folder / NAME, folder / f"{NAME}-journal", *_flat_files(folder)]:
            path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Forget everything, the model too; readers at work see either all or nothing."""
        with self.db.transaction():
            for table in TABLES:
                self.db.do(f"DELETE FROM {table} WHERE true")
            generation = self.db.number("generation") + 1
            self.db.do("DELETE FROM meta WHERE key != 'schema'")
            self.db.put(rows="0", tokens="0", generation=str(generation), parts="0")
        self._tidy(generation)
        self.db.do("VACUUM")

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
        return self.entries("n_tokens IS NULL")

    def passages(self, entry: Entry) -> list[Row]:
        """The passages of a document, which together are its whole text."""
        select = "SELECT start, line, section, text FROM passages WHERE id >= ? AND id < ? ORDER BY id"
        rows = self.db.rows(select, entry.first, entry.first + entry.passages)
        if len(rows) != entry.passages:
            raise damaged(self.folder, "passages are missing")
        return [Row(*row) for row in rows]

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
        return self._mapped("vectors", self._size("width"), np.dtype("<f2"))

    def tokens(self) -> ByteArray:
        """(T, B) bytes: all tokens that are kept."""
        return self._mapped("tokens", self._size("token_bytes"), np.dtype("u1"))

    def _size(self, key: str) -> int:
        return self.db.number(key) if self.db.get(key) else 0

    def _mapped(
        self, name: str, width: int, dtype: np.dtype[Any]
    ) -> np.ndarray[tuple[int, int], np.dtype[Any]]:
        path = self._path(self.db.number("generation"), name)
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

    def _all_postings(self, table: str = "postings") -> Iterator[tuple[str, Postings]]:
        parts = self.db.do(f"SELECT term, slot, data FROM {table} ORDER BY term, slot")
        for stem, own in groupby(parts, itemgetter(0)):
            yield stem, self._checked(unpack((slot, data) for _, slot, data in own))

    def _checked(self, postings: Postings) -> Postings:
        if postings.rows.max(initial=-1) >= self.db.number("rows"):
            raise damaged(self.folder, "a word stands where there is no passage")
        return postings

    # Changes, all of them inside a transaction

    def add(self, group: Sequence[tuple[Entry, Sequence[Row]]]) -> dict[bytes, int]:
        """Add documents with their words; the ids of their digests."""
        texts: list[str] = []
        for entry, rows in group:
            texts += [
                entry.title,
                *(f"{row.section}\n{row.text}" if row.section else row.text for row in rows),
            ]
        packed, counts = postings(texts)
        begin = slot = self.db.number("rows")
        first = self.db.rows("SELECT coalesce(max(id), 0) + 1 FROM passages")[0][0]
        ids = {}
        for entry, rows in group:
            own = counts[slot - begin + 1 : slot - begin + 1 + len(rows)]
            lengths = np.maximum(own, 1).astype("<u4").tobytes()
            crc = _crc(entry.title, entry.pages, lengths, rows)
            place = {"passages": len(rows), "first": first, "slot": slot, "lengths": lengths, "crc": crc}
            values = [place.get(name, getattr(entry, name)) for name in COLUMNS[1:]]
            marks = ", ".join("?" * len(values))
            names = ", ".join(COLUMNS[1:])
            row = self.db.do(f"INSERT INTO documents ({names}) VALUES ({marks})", *values)
            ids[entry.digest] = int(row.lastrowid or 0)
            self.db.do_many(
                "INSERT INTO passages VALUES (?, ?, ?, ?, ?)",
                [(first + i, *own) for i, own in enumerate(rows)],
            )
            slot, first = slot + len(rows) + 1, first + len(rows)
        values = [(stem, begin, data) for stem, data in sorted(packed.items())]
        self.db.do_many("INSERT INTO postings VALUES (?, ?, ?)", values)
        self.db.put(rows=str(slot), parts=str(self.db.number("parts") + 1))
        return ids

    def put_files(self, files: Iterable[File]) -> None:
        """Say which document each of some files holds."""
        words = {file.path: words_of(file.path.stem) for file in files}
        stem_of = stems(word for own in words.values() for word in own)
        for file in files:
            name = os.fsencode(file.path)
            self._forget(name)
            row = self.db.do(
                "INSERT INTO files (path, size, mtime, document) VALUES (?, ?, ?, ?)",
                *(name, file.size, file.mtime, file.document),
            )
            terms = dict.fromkeys(stem_of[word] for word in words[file.path])
            self.db.do_many("INSERT INTO names VALUES (?, ?)", [(term, row.lastrowid) for term in terms])

    def remove(self, paths: Iterable[Path]) -> None:
        """Forget files."""
        for path in paths:
            self._forget(os.fsencode(path))

    def _forget(self, name: bytes) -> None:
        self.db.do("DELETE FROM names WHERE file IN (SELECT id FROM files WHERE path = ?)", name)
        self.db.do("DELETE FROM files WHERE path = ?", name)

    def remove_orphans(self) -> int:
        """Forget documents that no file holds any more, and say how many."""
        orphans = self.entries("id NOT IN (SELECT document FROM files)")
        for entry in orphans:
            self.db.do(
                "DELETE FROM passages WHERE id >= ? AND id < ?", entry.first, entry.first + entry.passages
            )
            self.db.do("DELETE FROM documents WHERE id = ?", entry.id)
        return len(orphans)

    def put_vectors(self, group: Sequence[tuple[Entry, Tables]]) -> None:
        """Write what the model made of documents; the entries say what it read of them."""
        first = group[0][1]
        sizes = {"width": first.vectors.shape[1], "token_bytes": first.tokens.shape[1]}
        token_slot = self._size("tokens")
        vectors, tokens, updates = [], [], []
        for entry, own in group:
            data = own.vectors.astype("<f2").tobytes(), own.tokens.tobytes()
            vectors.append((entry.slot, data[0]))
            tokens.append((token_slot, data[1]))
            ends = own.token_ends.astype("<u4").tobytes() if sizes["token_bytes"] else b""
            crc = zlib.crc32(b"".join((*data, ends)))
            updates.append((entry.n_tokens, entry.truncated, entry.windows, token_slot, ends, crc, entry.id))
            token_slot += len(own.tokens)
        self._write("vectors", 2 * sizes["width"], vectors)
        self._write("tokens", sizes["token_bytes"], tokens)
        self.db.do_many(
            "UPDATE documents SET n_tokens = ?, truncated = ?, windows = ?, token_slot = ?, token_ends = ?, "
            "vectors_crc = ? WHERE id = ?",
            updates,
        )
        self.db.put(**{key: str(size) for key, size in sizes.items()}, tokens=str(token_slot))

    def _write(self, name: str, width: int, pieces: Sequence[tuple[int, bytes]]) -> None:
        if not width:
            return
        path = self._path(self.db.number("generation"), name)
        with open(path, "r+b" if path.exists() else "w+b") as out:
            for row, data in pieces:
                out.seek(row * width)
                out.write(data)
            out.flush()
            os.fsync(out.fileno())

    def compact(self) -> None:
        """Move the live rows together if too many are dead, and delete files that nothing refers to."""
        with self.db.transaction():
            entries, rows, generation = self.entries(), self.db.number("rows"), self.db.number("generation")
            live = sum(entry.passages + 1 for entry in entries)
            if rows - live > WASTE * rows or self.db.number("parts") > PARTS:
                generation += 1
                self._move(entries, rows, generation)
                self.db.put(rows=str(live), generation=str(generation), parts="1")
        self._tidy(generation)

    def _move(self, entries: Sequence[Entry], rows: int, generation: int) -> None:
        """Write the live rows to the files of a new generation."""
        tables = {"vectors": self.vectors(), "tokens": self.tokens()}
        place = np.full(rows, -1)
        slot = token_slot = 0
        pieces: dict[str, list[tuple[int, bytes]]] = {name: [] for name in FILES}
        for entry in entries:
            place[entry.rows] = slot + np.arange(entry.passages + 1)
            if entry.n_tokens is not None:
                own = slice(entry.slot, entry.slot + entry.passages + 1)
                pieces["vectors"].append((slot, tables["vectors"][own].tobytes()))
                tokens = tables["tokens"][entry.token_slot : entry.token_slot + entry.tokens]
                pieces["tokens"].append((token_slot, tokens.tobytes()))
            self.db.do(
                "UPDATE documents SET slot = ?, token_slot = ? WHERE id = ?", slot, token_slot, entry.id
            )
            slot, token_slot = slot + entry.passages + 1, token_slot + entry.tokens
        self._join(place)
        self.db.put(generation=str(generation), tokens=str(token_slot))
        for name, width in zip(FILES, (2 * self._size("width"), self._size("token_bytes")), strict=True):
            self._path(generation, name).unlink(missing_ok=True)
            self._write(name, width, pieces[name])

    def _join(self, place: IntArray) -> None:
        """Join the parts of the postings; `place` is the new row of each old one, -1 for the dead."""
        self.db.do("ALTER TABLE postings RENAME TO old_postings")
        self.db.do(POSTINGS)
        for stem, (old, counts) in self._all_postings("old_postings"):
            rows, counts = place[old], counts[place[old] >= 0]
            rows = rows[rows >= 0]
            for base in range(0, len(place), PART):
                own = rows // PART == base // PART
                if own.any():
                    data = pack(rows[own] - base, counts[own])
                    self.db.do("INSERT INTO postings VALUES (?, ?, ?)", stem, base, data)
        self.db.do("DROP TABLE old_postings")

    def _tidy(self, generation: int) -> None:
        keep = {self._path(generation, name) for name in FILES}
        for path in _flat_files(self.folder):
            if path not in keep:
                with suppress(OSError):  # mapped by another process where that forbids deletion
                    path.unlink()

    def verify(self) -> None:
        """Compare everything with its checksums; damage is an error."""
        if self.db.rows("PRAGMA integrity_check") != [("ok",)]:
            raise damaged(self.folder, f"{NAME} fails SQLite's integrity check")
        lengths = np.zeros(self.db.number("rows"), np.int64)
        vectors, tokens = self.vectors(), self.tokens()
        for entry in self.entries():
            rows = self.passages(entry)
            sound = _crc(entry.title, entry.pages, entry.lengths, rows) == entry.crc
            if entry.n_tokens is not None:
                own = slice(entry.slot, entry.slot + entry.passages + 1)
                codes = tokens[entry.token_slot : entry.token_slot + entry.tokens]
                data = vectors[own].tobytes() + codes.tobytes() + entry.token_ends
                sound &= zlib.crc32(data) == entry.vectors_crc
            if not sound:
                raise damaged(
                    self.folder, f"what it holds of {entry.title or entry.digest.hex()} has changed"
                )
            lengths[entry.rows[1:]] = numbers(entry.lengths)
        sums = np.zeros_like(lengths)
        for _, (rows_, counts) in self._all_postings():
            sums[rows_] += counts
        live = lengths > 1
        if (sums < np.minimum(lengths, MAX_COUNT))[live].any() or (sums > lengths)[live].any():
            raise damaged(self.folder, "its table of words is not whole")

    def sizes(self) -> dict[str, int]:
        """Bytes of the files of the index: its database, and each of the flat files."""
        generation = self.db.number("generation")
        paths = {"text and words": self.folder / NAME}
        paths |= {name: self._path(generation, name) for name in FILES}
        return {name: path.stat().st_size for name, path in paths.items() if path.is_file()}

    def _path(self, generation: int, name: str) -> Path:
        return self.folder / f"{name}-{generation}.bin"


def numbers(data: bytes) -> IntArray:
    """Whole numbers that are stored as <u4."""
    return np.frombuffer(data, "<u4").astype(np.int64)


def _flat_files(folder: Path) -> list[Path]:
    return [path for name in FILES for path in folder.glob(f"{name}-*.bin")]


def _crc(title: str, pages: bytes, lengths: bytes, rows: Sequence[Row]) -> int:
    """A checksum of all that a search may show of a document."""
    shown = "\0".join((title, *(f"{row.start} {row.line} {row.section}\0{row.text}" for row in rows)))
    return zlib.crc32(shown.encode("utf-8", "surrogatepass"), zlib.crc32(pages + lengths))
