"""Large documents: written part by part and read segment by segment, so that memory stays small.

Words: the first part makes the document, every other extends it, each in a transaction of its own; until the
last one, the file counts as changed, and the next run goes on there. Vectors: what the model has made of the
first passages is kept beside the document; once it has read the last, the document is one like all others.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple, Self

import numpy as np

from longspan.errors import LongspanError
from longspan.search.faults import damaged
from longspan.search.flat import chunks
from longspan.search.flat import made as stored
from longspan.search.records import (
    BEGUN,
    COLUMNS,
    Entry,
    File,
    Row,
    Tables,
    checksum,
    numbers,
    passages_crc,
    texts_of,
    vectors_checksum,
)
from longspan.search.store import Store
from longspan.search.words import postings

SEGMENT = 1 << 20
"""Characters of a document that is read at once at most."""
STEP = 1 << 17
"""Characters of a segment of a longer one: what a kill may cost."""
NEVER = -1
"""The size and time of a file of which only the first parts are written."""


class Progress(NamedTuple):
    """What the model has made of the first passages of a document."""

    passages: int = 0
    n_tokens: int = 0
    truncated: int = 0
    windows: int = 0
    token_slot: int = 0
    token_ends: bytes = b""
    vector: bytes = b""
    "The sum of the segments' vectors, each times its tokens, as <f8."

    @property
    def tokens(self) -> int:
        """How many tokens have vectors of their own."""
        return int(numbers(self.token_ends)[-1]) if self.token_ends else 0


@dataclass
class Growing:
    """A document whose words are being written."""

    store: Store
    files: Sequence[File]
    entry: Entry
    "As it will be at the end, but for its passages; then as it is stored."
    crc: int = 0

    @classmethod
    def begin(cls, store: Store, files: Sequence[File], entry: Entry) -> Self:
        """A new document, or one that an interrupted run has begun."""
        digest = entry.digest + BEGUN
        for old in store.entries():
            if old.digest != digest:
                continue
            if old.slot + 1 + old.passages == store.db.number("rows"):
                return cls(store, files, old, passages_crc(store.each_passage(old)))
            with store.db.transaction():  # others follow it, so it cannot be extended
                store.remove(file.path for file in store.files() if file.document == old.id)
                store.remove_orphans()
        return cls(store, files, replace(entry, digest=digest))

    def add(self, rows: Sequence[Row], end: int) -> None:
        """Commit the next passages, up to a character; a search finds them at once."""
        begun = replace(self.entry, characters=end)
        first = not begun.id
        if not rows:
            self.entry = begun
            return
        with self.store.db.transaction():
            self.entry, self.crc = extend(self.store, begun, rows, self.crc)
            if first:
                self._put([file._replace(size=NEVER, mtime=NEVER) for file in self.files])

    def finish(self) -> None:
        """Make it a document like all others."""
        whole = replace(self.entry, digest=self.entry.digest.removesuffix(BEGUN))
        with self.store.db.transaction():
            self.entry, self.crc = extend(self.store, whole, [], self.crc)
            self._put(self.files)

    def _put(self, files: Iterable[File]) -> None:
        self.store.put_files([file._replace(document=self.entry.id) for file in files])
        self.store.remove_orphans()


def extend(store: Store, entry: Entry, rows: Sequence[Row], before: int = 0) -> tuple[Entry, int]:
    """Add a large document, or the next of its passages, and give it back as it is now stored.

    `before`, and what is returned beside the document, is the checksum of its passages so far. Nothing
    else may be added meanwhile.
    """
    begin, first = store.db.number("rows"), store.db.next_id("passages")
    if not entry.id:
        entry = replace(entry, id=store.db.next_id("documents"), first=first, slot=begin)
    words = list(texts_of(entry, rows))[min(1, entry.passages) :]
    end = entry.slot + min(1, entry.passages) + entry.passages
    if (begin, first) != (end, entry.first + entry.passages):
        raise LongspanError(f"The index `{store.folder}` was changed by another process. Run this again.")
    packed, counts = postings(words)
    lengths = np.maximum(counts[len(words) - len(rows) :], 1).astype("<u4").tobytes()
    entry = replace(entry, passages=entry.passages + len(rows), lengths=entry.lengths + lengths)
    crc = passages_crc(rows, before)
    entry = replace(entry, crc=checksum(entry, crc))
    store.db.do("DELETE FROM documents WHERE id = ?", entry.id)
    store.db.insert("documents", [[getattr(entry, name) for name in COLUMNS]])
    store.db.insert("passages", [(number, *row) for number, row in enumerate(rows, first)])
    store.db.insert("postings", [(stem, begin, data) for stem, data in sorted(packed.items())])
    store.db.put(rows=str(begin + len(words)), parts=str(store.db.number("parts") + 1))
    return entry, crc


def progress_of(store: Store, entry: Entry) -> Progress:
    """How far the model has come in a document that it has not read to the end."""
    columns = ", ".join(Progress._fields)
    rows = store.db.rows(f"SELECT {columns} FROM unfinished WHERE document = ?", entry.id)
    return Progress(*rows[0]) if rows else Progress()


def verify_progress(store: Store) -> None:
    """Compare what is known of unfinished documents with its checksums; damage is an error."""
    entries = {entry.id: entry for entry in store.entries()}
    columns = ", ".join(Progress._fields)
    for number, *values, crc in store.db.rows(f"SELECT document, {columns}, crc FROM unfinished"):
        entry = entries.get(number)
        if entry is None or entry.n_tokens is not None or crc != _crc(number, Progress(*values)):
            raise damaged(store.folder, "how far a document was read has changed")


def _crc(document: int, done: Progress) -> int:
    numbers = f"{document} {done.passages} {done.n_tokens} {done.truncated} {done.windows} {done.token_slot}"
    return zlib.crc32(numbers.encode() + b"\0" + done.token_ends + b"\0" + done.vector)


def characters_read(store: Store, entry: Entry) -> int:
    """How many characters of a document the model has read, if not all."""
    done = progress_of(store, entry).passages
    return next(store.each_passage(entry, done)).start if 0 < done < entry.passages else 0


def segments(store: Store, entry: Entry, first: int) -> Iterator[list[Row]]:
    """The passages of a document from a number on, those together that are read at once."""
    for _, rows in groupby(store.each_passage(entry, first), lambda row: row.start // STEP):
        yield list(rows)


def advance(store: Store, entry: Entry, done: Progress, made: Tables, reading: Sequence[int]) -> Progress:
    """Write what the model made of the next segment, inside a transaction; `reading` is what it has read.

    `made` holds the vector of the segment, then those of its passages.
    """
    width, token_bytes = made.vectors.shape[1], made.tokens.shape[1]
    generation, token_slot, end = store.db.number("generation"), done.token_slot, store.size_of("tokens")
    if not done.tokens:
        token_slot = end
    elif end != token_slot + done.tokens:  # other documents were read since
        token_slot = _copied(store, done, end, token_bytes)
    vectors = made.vectors[1:].astype("<f2").tobytes()
    store.write(store.path_of(generation, "vectors"), 2 * width, [(entry.slot + 1 + done.passages, vectors)])
    behind = token_slot + done.tokens
    store.write(store.path_of(generation, "tokens"), token_bytes, [(behind, made.tokens.tobytes())])
    ends = (made.token_ends + done.tokens).astype("<u4").tobytes() if token_bytes else b""
    vector = np.frombuffer(done.vector, "<f8") if done.vector else np.zeros(width)
    n_tokens, truncated, windows = reading
    now = Progress(
        done.passages + len(made.vectors) - 1,
        done.n_tokens + n_tokens,
        done.truncated + truncated,
        done.windows + windows,
        token_slot,
        done.token_ends + ends,
        (vector + made.vectors[0].astype("<f8") * n_tokens).tobytes(),
    )
    store.db.do("DELETE FROM unfinished WHERE document = ?", entry.id)
    store.db.insert("unfinished", [(entry.id, *now, _crc(entry.id, now))])
    store.db.put(width=str(width), token_bytes=str(token_bytes), tokens=str(behind + len(made.tokens)))
    return now


def _copied(store: Store, done: Progress, end: int, width: int) -> int:
    """Copy the tokens of the first segments behind all others, where the next ones can follow them."""

    def moved() -> Iterator[tuple[int, bytes]]:
        place = end
        for data in chunks(store, "tokens", width, done.token_slot, done.tokens):
            yield place, data
            place += len(data) // width

    store.write(store.path_of(store.db.number("generation"), "tokens"), width, moved())
    return end


def finish(store: Store, entry: Entry, done: Progress) -> None:
    """Make a document that the model has read to its end one like all others, inside a transaction."""
    mean = np.frombuffer(done.vector, "<f8") / max(1, done.n_tokens)
    vector = (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype("<f2")
    store.write(
        store.path_of(store.db.number("generation"), "vectors"),
        vector.nbytes,
        [(entry.slot, vector.tobytes())],
    )
    columns = done._asdict()
    del columns["passages"], columns["vector"]
    read = replace(entry, **columns)
    crc = vectors_checksum(read, stored(store, read))
    store.db.do("DELETE FROM unfinished WHERE document = ?", entry.id)
    store.db.do(
        "UPDATE documents SET n_tokens = ?, truncated = ?, windows = ?, token_slot = ?, token_ends = ?, "
        "vectors_crc = ? WHERE id = ?",
        *columns.values(),
        crc,
        entry.id,
    )
