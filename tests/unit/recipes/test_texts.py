"""Texts as bytes: packed or not, in three splits, and what is told of those that cannot be used."""

import gzip
import lzma
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from longspan.errors import DocumentError, InputError, LongspanError
from longspan.recipes.char_lm import texts
from longspan.recipes.char_lm.texts import SPLITS, alphabet_of, open_splits, open_text

TEXT = bytes(range(256)) * 4


def packed(folder: Path, ending: str) -> Path:
    path = folder / f"text{ending}"
    match ending:
        case ".gz":
            path.write_bytes(gzip.compress(TEXT))
        case ".xz":
            path.write_bytes(lzma.compress(TEXT))
        case ".zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("enwik8", TEXT)
        case _:
            path.write_bytes(TEXT)
    return path


@pytest.mark.parametrize("ending", ["", ".txt", ".gz", ".xz", ".zip"])
def test_a_text_is_mapped_however_it_is_packed(tmp_path: Path, ending: str) -> None:
    text = open_text(packed(tmp_path, ending))
    assert isinstance(text, np.memmap)
    assert text.tobytes() == TEXT


def test_the_splits_of_a_file_are_its_parts(tmp_path: Path) -> None:
    parts = open_splits(packed(tmp_path, ""), *SPLITS)
    assert [len(part) for part in parts] == [1024 - 2 * 51, 51, 51]
    assert b"".join(part.tobytes() for part in parts) == TEXT


def test_enwik8_is_split_at_90_and_95_million(tmp_path: Path) -> None:
    path = tmp_path / "enwik8"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    assert [len(part) for part in open_splits(path, *SPLITS)] == [90_000_000, 5_000_000, 5_000_000]


def test_a_folder_holds_a_file_for_each_split(tmp_path: Path) -> None:
    for name in ("wiki.train.raw", "wiki.valid.raw"):
        (tmp_path / name).write_bytes(name.encode())
    assert open_splits(tmp_path, "train")[0].tobytes() == b"wiki.train.raw"
    assert open_splits(tmp_path, "valid")[0].tobytes() == b"wiki.valid.raw"
    with pytest.raises(InputError, match="a folder with one file whose name says test, but is 'without one'"):
        open_splits(tmp_path, "test")
    (tmp_path / "more-train.txt").write_bytes(b"x")
    with pytest.raises(InputError, match="whose name says train, but is '2 of them'"):
        open_splits(tmp_path, "train")


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`split` must be one of train, valid, test, but is 'dev'"):
        open_splits(tmp_path, "dev")
    with pytest.raises(InputError, match="`data` must be a file or folder that exists"):
        open_text(tmp_path / "missing")
    empty = tmp_path / "empty.txt"
    empty.touch()
    with pytest.raises(DocumentError, match="cannot be read: it is empty"):
        open_text(empty)
    short = tmp_path / "short.txt"
    short.write_bytes(b"nineteen characters"[:19])
    with pytest.raises(InputError, match="`data` must be long enough to be split, but is '19 bytes long'"):
        open_splits(short, "test")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DocumentError, match="it is not a regular file"):
        open_text(tmp_path / "pipe")


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zip"])
def test_a_damaged_file_is_told(tmp_path: Path, ending: str) -> None:
    path = packed(tmp_path, ending)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DocumentError, match="it is damaged"):
        open_text(path)
    path.write_bytes(b"no archive")
    with pytest.raises(DocumentError, match="it is damaged"):
        open_text(path)


def test_an_archive_of_several_files_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a", b"a")
        archive.writestr("b", b"b")
    with pytest.raises(DocumentError, match="it holds 2 files, not one"):
        open_text(tmp_path / "two.zip")


def test_an_archive_that_never_ends_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MOST", 1000)
    with pytest.raises(DocumentError, match=r"it has more than 1,000 bytes\. Unpack it yourself"):
        open_text(packed(tmp_path, ".gz"))


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(texts, "_unpack", full)
    with pytest.raises(LongspanError, match=r"cannot be unpacked: No space left on device\."):
        open_text(packed(tmp_path, ".gz"))


def test_the_alphabet_is_what_occurs() -> None:
    assert alphabet_of(np.frombuffer(b"banana", np.uint8)) == (97, 98, 110)
