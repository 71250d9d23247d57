"""Files to the texts that a model is trained on: a document, a line, a JSON object or a sequence each."""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from longspan.corpus import fasta
from longspan.errors import DocumentError, unreadable, whole
from longspan.text.documents import WHOLE, Document, Limits, read_many
from longspan.text.files.kinds import AS_THEY_ARE, HEAD, kind_of
from longspan.text.files.parsed import Refusal
from longspan.text.files.plain import looks_binary
from longspan.text.files.regular import opened, read
from longspan.text.parts import PART, is_large, parts_of, read_parts

PACKED, RECORDS = ".gz", ".jsonl"
SUFFIXES = (PACKED, *fasta.SUFFIXES)
"""Files in folders that are training data, though no documents."""
LONGEST = 64 << 20
"""Bytes of a line."""
ENDLESS = Limits(bytes=1 << 48, characters=1 << 48)
"""For what is read piece by piece: it needs no more memory than a short file."""


class Place(NamedTuple):
    """How far the files are read: how many of them, and how many texts of the next one."""

    file: int = 0
    text: int = 0


START = Place()


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a text is."""

    lines: bool = False
    "Each line of a plain text is a text of its own; else the whole file is."
    field: str = "text"
    "Where the text stands in the objects of a .jsonl file."
    stretch: int = fasta.STRETCH
    "Bases of a text, of those that FASTA files hold."
    limits: Limits = WHOLE
    "Of documents that are read at once; plain texts may have any length."

    def __post_init__(self) -> None:
        whole("stretch", self.stretch, 1)


def texts(
    files: Sequence[Path], rules: Rules, begin: Place = START
) -> Iterator[tuple[Place, str | DocumentError]]:
    """The texts of all files behind a place, each with the place behind it; an error in the place of a file
    that cannot be read, or not to its end."""
    numbers = range(begin.file, len(files))
    for streamed, run in groupby(numbers, lambda number: _is_streamed(files[number], rules)):
        own = list(run)
        found = (
            ((number, _pieces(files[number], rules)) for number in own)
            if streamed
            else zip(own, map(_parts, read_many([files[n] for n in own], limits=rules.limits)), strict=False)
        )
        for number, pieces in found:
            skip = begin.text if number == begin.file else 0
            yield from _placed(number, files[number], pieces, skip)


def _placed(
    number: int, path: Path, pieces: Iterable[str], skip: int
) -> Iterator[tuple[Place, str | DocumentError]]:
    try:
        with _refusing(path):
            for count, text in enumerate(pieces, 1):
                if count > skip:
                    yield Place(number, count), text
    except DocumentError as error:
        yield Place(number + 1), error


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Errors that tell which file it is."""
    try:
        yield
    except Refusal as refusal:
        raise unreadable(path, refusal.reason, refusal.repair) from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise unreadable(path, "it is no gzip file, or was cut off", "Download it again.") from None
    except OSError as error:
        raise unreadable(path, error.strerror or str(error)) from None


def _parts(document: Document | DocumentError) -> Iterator[str]:
    """The parts of a document that has been read: large ones are not tokenized at once."""
    if isinstance(document, DocumentError):
        raise document
    for part in parts_of(document):
        yield part.document.text


def _kind(path: Path) -> str:
    """The suffix that tells what is in a file."""
    return Path(path.stem if path.suffix.lower() == PACKED else path.name).suffix.lower()


def _is_streamed(path: Path, rules: Rules) -> bool:
    """Whether a file is read piece by piece."""
    packed = path.suffix.lower() == PACKED
    if packed or _kind(path) in (RECORDS, *fasta.SUFFIXES):
        return True
    try:
        with opened(path) as file:
            plain = kind_of(path, read(file, HEAD)) in AS_THEY_ARE
    except (Refusal, OSError):
        return False  # whoever reads it says what is wrong
    return plain and (rules.lines or is_large(path) or _is_binary(path))


def _is_binary(path: Path) -> bool:
    with opened(path) as file:
        return looks_binary(read(file, HEAD))


def _pieces(path: Path, rules: Rules) -> Iterator[str]:
    """The texts of a file that is read piece by piece."""
    kind = _kind(path)
    if kind in fasta.SUFFIXES:
        yield from fasta.sequences(_lines(path), rules.stretch)
    elif kind == RECORDS:
        for number, line in enumerate(_lines(path), 1):
            if line.strip():
                yield _record(line, number, rules.field)
    elif path.suffix.lower() == PACKED:
        for text in _unpacked(path):
            yield from text.splitlines() if rules.lines else [text]
    elif _is_binary(path):
        raise Refusal("it looks binary", "Give text, or a format that Longspan reads.")
    else:
        for part in read_parts(path, limits=ENDLESS):
            text = part.document.text
            yield from text.splitlines() if rules.lines else [text]


def _record(line: str, number: int, field: str) -> str:
    """The text of a line of JSON: a string, or an object that holds one."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise Refusal(f"line {number} is not JSON") from None
    text = found.get(field) if isinstance(found, dict) else found
    if not isinstance(text, str):
        raise Refusal(f'line {number} has no text in "{field}"', "Name its field: --field.")
    return text


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A file, unpacked as it is read."""
    with opened(path) as file:
        packed = path.suffix.lower() == PACKED
        with gzip.GzipFile(fileobj=file) if packed else nullcontext(file) as unpacked:
            yield cast(BinaryIO, unpacked)


def _lines(path: Path) -> Iterator[str]:
    with _opened(path) as file:
        number = 0
        while data := file.readline(LONGEST + 1):
            number += 1
            if len(data) > LONGEST:
                raise Refusal(f"line {number} has more than {LONGEST:,} bytes")
            try:
                yield data.decode()
            except UnicodeDecodeError:
                raise Refusal(f"line {number} is not UTF-8") from None


def _unpacked(path: Path) -> Iterator[str]:
    """Pieces of at most PART bytes, or a line more, of a packed text."""
    with _opened(path) as file:
        while data := file.read(PART):
            data += file.readline(LONGEST)
            if looks_binary(data[:HEAD]):
                raise Refusal("it looks binary", "Give text, or a format that Longspan reads.")
            yield data.decode("utf-8", "replace")
