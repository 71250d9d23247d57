"""Long texts as bytes, mapped into memory, and their three splits."""

import gzip
import lzma
import os
import stat
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np

from longspan.errors import LongspanError, bad, one_of, unreadable

Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]
SPLITS = ("train", "valid", "test")
USUAL, HELD_OUT = 100_000_000, 5_000_000
"""Bytes of enwik8 and of text8, and of their last two splits."""
SHARE = 0.05
"""The last two splits of any other text."""
MOST = 1 << 36
"""Bytes of the largest text that is unpacked here."""
CHUNK = 1 << 22


def open_splits(data: Path, *splits: str) -> list[Bytes]:
    """Splits of a text: of a file its parts, of a folder the files that have the split in their names.

    Files may be plain, or packed as .gz, .xz or .zip. enwik8 and text8 are split at 90 and 95 million bytes,
    other files at 90 and 95 percent.
    """
    names, data = [one_of("split", split, SPLITS) for split in splits], data.expanduser()
    if data.is_dir():
        return [open_text(path) for path in [_named(data, name) for name in names]]
    text = open_text(data)
    return [_part(text, SPLITS.index(name)) for name in names]


def _part(text: Bytes, number: int) -> Bytes:
    size = len(text)
    held = HELD_OUT if size == USUAL else int(size * SHARE)
    if not held:
        raise bad("data", "long enough to be split", f"{size} bytes long")
    ends = 0, size - 2 * held, size - held, size
    return text[ends[number] : ends[number + 1]]


def _named(folder: Path, split: str) -> Path:
    names = ("valid", "dev") if split == "valid" else (split,)
    found = sorted(
        path for path in folder.iterdir() if path.is_file() and any(name in path.name for name in names)
    )
    if len(found) != 1:
        value = f"{len(found)} of them" if found else "without one"
        raise bad("data", f"a folder with one file whose name says {split}", value)
    return found[0]


def open_text(path: Path) -> Bytes:
    """The bytes of a file, mapped; what is packed is unpacked into a file that vanishes with the process."""
    if not path.exists():
        raise bad("data", "a file or folder that exists", str(path))
    if not stat.S_ISREG(path.stat().st_mode):
        raise unreadable(path, "it is not a regular file")
    opened = PACKED.get(path.suffix)
    if opened is None:
        with path.open("rb") as plain:
            return _mapped(plain, path)
    with TemporaryFile() as file:
        try:
            with opened(path) as source:
                _unpack(source, file, path)
        except (OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise LongspanError(f"`{path}` cannot be unpacked: {error.strerror}.") from error
            raise unreadable(path, f"it is damaged ({error})", "Fetch it again.") from None
        return _mapped(file, path)


def _unpack(source: IO[bytes], file: IO[bytes], path: Path) -> None:
    size = 0
    while piece := source.read(CHUNK):
        size += len(piece)
        if size > MOST:
            raise unreadable(path, f"it has more than {MOST:,} bytes", "Unpack it yourself.")
        file.write(piece)
    file.flush()


def _mapped(file: IO[bytes], path: Path) -> Bytes:
    if not os.fstat(file.fileno()).st_size:
        raise unreadable(path, "it is empty")
    return np.memmap(file, np.uint8, "r")


def _only_member(path: Path) -> Any:
    archive = zipfile.ZipFile(path)
    names = [name for name in archive.namelist() if not name.endswith("/")]
    if len(names) != 1:
        raise unreadable(path, f"it holds {len(names)} files, not one")
    return archive.open(names[0])


PACKED: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".zip": _only_member}
"""How files with these endings are unpacked."""


def alphabet_of(text: Bytes) -> tuple[int, ...]:
    """The bytes that occur in a text, ascending."""
    seen = np.zeros(256, bool)
    for start in range(0, len(text), CHUNK):
        seen |= np.bincount(text[start : start + CHUNK], minlength=256) > 0
    return tuple(np.flatnonzero(seen).tolist())
