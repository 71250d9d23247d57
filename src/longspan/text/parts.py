"""Large documents part by part: plain text is never read at once, so memory stays small."""

import codecs
import os
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from longspan.errors import unreadable
from longspan.text.documents import DEFAULT, Document, Heading, Limits, check_size
from longspan.text.files.encoding import BEFORE, SAMPLE, guessed, unmarked_utf16
from longspan.text.files.kinds import AS_THEY_ARE, DATA, HEAD, kind_of
from longspan.text.files.parsed import Parsed, Refusal, too_long
from longspan.text.files.plain import MARKS
from longspan.text.files.regular import opened, read
from longspan.text.outline import outline

PART = 1 << 23
"""Characters of a part at most."""
LARGE = 2 * PART
"""Characters, or bytes of plain text, of a document that is taken apart."""
CHUNK = 1 << 20
REACH = 1 << 16
"""Characters at the end of a part among which it is cut."""


class Part(NamedTuple):
    """A part of a document; together, the texts of all parts are its text."""

    document: Document
    "Its offsets count from the beginning of the part."
    start: int
    "Where the part begins, in characters of the whole."
    line: int
    "The line of the whole that it begins on, from 1."
    done: int
    "Bytes of the file up to its end."


def is_large(path: Path) -> bool:
    """Whether a file is plain text, and too large to be read at once."""
    try:
        if path.stat().st_size <= LARGE:
            return False
        with opened(path) as file:
            return kind_of(path, read(file, HEAD)) in AS_THEY_ARE
    except (Refusal, OSError):
        return False  # whoever reads it will say what is wrong


def read_parts(path: Path, *, limits: Limits = DEFAULT) -> Iterator[Part]:
    """The parts of a file of plain text; a DocumentError, perhaps after some parts, if it cannot be read."""
    try:
        with opened(path) as file:
            check_size(os.fstat(file.fileno()).st_size, limits)
            kind = kind_of(path, read(file, HEAD))
            start, line, title = 0, 1, None
            for text, replaced, done in _texts(file, limits):
                suffix = path.suffix.lower()
                parsed = Parsed(text, replaced=replaced)
                # Only the first row of a table names its columns.
                own = outline(parsed, kind, suffix) if not start or suffix not in DATA else (None, ())
                title = title if start else own[0]
                yield Part(Document(text, path, (), title, replaced, kind, own[1]), start, line, done)
                start, line = start + len(text), line + text.count("\n")
    except Refusal as refusal:
        raise unreadable(path, refusal.reason, refusal.repair) from None
    except OSError as error:
        raise unreadable(path, error.strerror or str(error)) from None


def parts_of(document: Document) -> Iterator[Part]:
    """The parts of a document that has been read."""
    starts = [heading.start for heading in document.headings]
    start, line = 0, 1
    while start < len(document.text):
        window = document.text[start : start + PART]
        text = window[: _cut(window)] if start + PART < len(document.text) else window
        end = start + len(text)
        own = document.headings[bisect_left(starts, start) : bisect_left(starts, end)]
        moved = tuple(Heading(heading.start - start, heading.level, heading.text) for heading in own)
        part = Document(text, document.source, (), document.title, 0, document.kind, moved)
        yield Part(part, start, line, end)
        start, line = end, line + text.count("\n")


def _texts(file: BinaryIO, limits: Limits) -> Iterator[tuple[str, int, int]]:
    """Pieces of text, how many U+FFFD in each stand for invalid bytes, and the bytes read so far."""
    codec, begin = _codec(file)
    file.seek(begin)
    decoder = codecs.getincrementaldecoder(codec)("replace")
    genuine, tail = "\ufffd".encode(codec, "ignore"), b""
    waiting, total, wrong, ended = "", 0, 0, False
    while not ended:
        data = read(file, CHUNK)
        ended = not data
        check_size(file.tell(), limits)
        text = decoder.decode(data, final=ended)
        total += len(text)
        if total > limits.characters:
            raise too_long(limits.characters)
        wrong += text.count("\ufffd") - ((tail + data).count(genuine) if genuine else 0)
        tail = data[1 - len(genuine) :] if len(genuine) > 1 else b""
        waiting += text
        if len(waiting) >= PART or (ended and waiting):
            cut = len(waiting) if ended else _cut(waiting[:PART])
            yield waiting[:cut], max(0, wrong), file.tell()
            waiting, wrong = waiting[cut:], 0


def _codec(file: BinaryIO) -> tuple[str, int]:
    """The encoding of a file, as `plain.decode` finds it, and where its text begins."""
    file.seek(0)
    head = read(file, HEAD)
    for mark, codec in MARKS:
        if head.startswith(mark):
            return codec, len(mark)
    if codec := unmarked_utf16(head[: len(head) // 2 * 2]):
        return codec, 0
    decoder, done = codecs.getincrementaldecoder("utf-8")(), 0
    file.seek(0)
    while data := read(file, CHUNK):
        waiting = len(decoder.getstate()[0])
        try:
            decoder.decode(data)
        except UnicodeDecodeError as error:
            wrong = done - waiting + error.start
            file.seek(max(0, wrong - BEFORE))
            return guessed(read(file, BEFORE + SAMPLE), min(wrong, BEFORE)), 0
        done += len(data)
    return "utf-8", 0


def _cut(text: str) -> int:
    """Where a part that begins so is best cut: between two paragraphs, lines or words."""
    least = max(1, len(text) - REACH)
    for mark in ("\n\n", "\n", " "):
        place = text.rfind(mark, least)
        if place >= 0:
            return place + len(mark)
    return len(text)
