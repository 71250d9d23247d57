"""Files of data, opened as data: regular, perhaps compressed, UTF-8 and no larger than they may be."""

import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, cast

from longspan.errors import unreadable
from longspan.text.files.parsed import Refusal
from longspan.text.files.regular import opened

LONGEST = 64 << 20
"""Bytes of a line."""
MOST = 1 << 30
"""Bytes of a file, unpacked."""
PACKED: dict[str, Callable[[BinaryIO], Any]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".xz": lzma.LZMAFile,
}


def kind(path: Path) -> str:
    """The suffix that tells what is in a file.

    >>> kind(Path("train.jsonl.gz")), kind(Path("TRAIN.CSV"))
    ('.jsonl', '.csv')
    """
    packed = path.suffix.lower() in PACKED
    return Path(path.stem if packed else path.name).suffix.lower()


def stem(path: Path) -> str:
    """The name of a file without what tells its kind.

    >>> stem(Path("data/train.jsonl.gz"))
    'train'
    """
    return path.name.removesuffix(path.suffix if path.suffix.lower() in PACKED else "").rpartition(".")[0]


@contextmanager
def refusing(path: Path) -> Iterator[None]:
    """Errors that tell which file it is."""
    try:
        yield
    except Refusal as refusal:
        raise unreadable(path, refusal.reason, refusal.repair) from None
    except (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError):
        raise unreadable(path, "it is damaged, or was cut off", "Download it again.") from None
    except OSError as error:
        raise unreadable(path, error.strerror or str(error)) from None


@contextmanager
def unpacked(path: Path) -> Iterator[BinaryIO]:
    """A file, unpacked as it is read."""
    with opened(path) as file:
        pack = PACKED.get(path.suffix.lower(), nullcontext)
        with pack(file) as inner:
            yield cast(BinaryIO, inner)


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Each line with its number from 1 and its end."""
    with refusing(path), unpacked(path) as file:
        number = total = 0
        while data := file.readline(LONGEST + 1):
            number, total = number + 1, total + len(data)
            if len(data) > LONGEST:
                raise Refusal(f"line {number} has more than {LONGEST:,} bytes")
            _check_size(total)
            yield number, _decoded(data, number)


def content(path: Path) -> str:
    """All of a file."""
    with refusing(path), unpacked(path) as file:
        data = file.read(MOST + 1)
        _check_size(len(data))
        return _decoded(data, 1)


def _check_size(size: int) -> None:
    if size > MOST:
        raise Refusal(f"it holds more than {MOST:,} bytes", "Cut it into several files in one folder.")


def _decoded(data: bytes, number: int) -> str:
    """The text that begins in line `number`; a byte order mark may stand before the first."""
    try:
        return data.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        number += data[: error.start].count(b"\n")
        raise Refusal(f"line {number} is not UTF-8", "Save it as UTF-8.") from None
