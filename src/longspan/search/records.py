"""What an index keeps of files, documents and passages."""

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longspan.search.words import stems, words_of
from longspan.shapes import ByteArray, FloatArray, IntArray
from longspan.text.files import kinds
from longspan.text.files.parsed import LONGEST_STAMP
from longspan.text.files.places import NOWHERE, Places

RECOGNIZED = b"+ocr"
"""Stands behind the digest of a document that was read with OCR."""
BEGUN = b"+begun"
"""Stands behind the digest of a large document of which only the first parts are written."""


class File(NamedTuple):
    """A file, and the document that it holds."""

    path: Path
    size: int
    mtime: int
    "When it was last changed, in nanoseconds."
    document: int = 0

    @property
    def crc(self) -> int:
        """A checksum of all that is known of it."""
        return zlib.crc32(os.fsencode(self.path) + f"\0{self.size} {self.mtime} {self.document}".encode())


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A document of the index; n_tokens is None until the model has read it, and 0 if it has no text."""

    id: int = 0
    digest: bytes
    kind: str = "text"
    title: str = ""
    characters: int = 0
    pages: bytes = b""
    "Where its pages begin, as <u4."
    places: bytes = b""
    "Where its text stands in the file, packed, if neither its lines nor its pages say it."
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
    def unrecognized(self) -> bool:
        """Whether it has pages without text that OCR was not tried on."""
        if self.kind not in kinds.RECOGNIZED or self.digest.endswith(RECOGNIZED):
            return False
        sizes = np.diff(numbers(self.pages), append=self.characters)
        return bool((sizes <= LONGEST_STAMP + 2).any())  # a blank line stands between pages

    @property
    def is_read(self) -> bool:
        """Whether it has vectors; one without text has none."""
        return self.n_tokens is not None and self.passages > 0

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
    "The headings that it begins under, one on each line."
    text: str

    @property
    def path(self) -> tuple[str, ...]:
        """The headings that it begins under, the outermost first."""
        return tuple(self.section.split("\n")) if self.section else ()


class Tables(NamedTuple):
    """What the model makes of a document."""

    vectors: FloatArray
    "(1 + P, C): the document, then its passages."
    tokens: ByteArray
    "(T, B): tokens as bytes; B may be 0."
    token_ends: IntArray
    "(P,): where the tokens of each passage end."


def numbers(data: bytes) -> IntArray:
    """Whole numbers that are stored as <u4."""
    return np.frombuffer(data, "<u4").astype(np.int64)


def packed(places: Places) -> bytes:
    """Places as bytes."""
    if not places:
        return b""
    steps = [
        np.diff(np.array(each, "<i8"), prepend=0).astype("<i4") for each in (places.starts, places.numbers)
    ]
    units = json.dumps(places.units).encode()
    return zlib.compress(units + b"\0" + b"".join(each.tobytes() for each in steps))


def unpacked(data: bytes) -> Places:
    """The places that `packed` made these bytes of."""
    if not data:
        return NOWHERE
    units, _, steps = zlib.decompress(data).partition(b"\0")
    starts, places = np.cumsum(np.frombuffer(steps, "<i4").reshape(2, -1), 1, dtype=np.int64).tolist()
    return Places(starts, places, tuple((first, unit) for first, unit in json.loads(units)))


def passages_crc(rows: Iterable[Row], before: int = 0) -> int:
    """A checksum of passages, that of those before them given."""
    for row in rows:
        shown = f"{row.start} {row.line} {row.section}\0{row.text}\0"
        before = zlib.crc32(shown.encode("utf-8", "surrogatepass"), before)
    return before


def checksum(entry: Entry, passages: int) -> int:
    """A checksum of all that a search may show of a document, or know it by, but for what the model makes.

    `passages` is that of its text.
    """
    numbers = f"{entry.id} {entry.characters} {entry.passages} {entry.first}"
    known = f"{numbers}\0{entry.title}\0{entry.kind}".encode("utf-8", "surrogatepass")
    return zlib.crc32(b"\0".join((known, entry.digest, entry.pages, entry.places, entry.lengths)), passages)


def vectors_checksum(entry: Entry, data: Iterable[bytes]) -> int:
    """A checksum of what the model makes of a document: `data` are its vectors, then its tokens."""
    crc = 0
    for piece in data:
        crc = zlib.crc32(piece, crc)
    known = f"{entry.n_tokens} {entry.truncated} {entry.windows}".encode()
    return zlib.crc32(entry.token_ends + known, crc)


def texts_of(entry: Entry, rows: Iterable[Row]) -> Iterator[str]:
    """The words of each row of a document: its title, then its passages under their headings."""
    yield entry.title
    for row in rows:
        yield f"{row.section}\n{row.text}" if row.section else row.text


def names_of(files: Sequence[File]) -> list[tuple[File, set[str]]]:
    """Files with the stems of their names."""
    words = [words_of(file.path.stem) for file in files]
    stem_of = stems(word for own in words for word in own)
    return [(file, {stem_of[word] for word in own}) for file, own in zip(files, words, strict=True)]
