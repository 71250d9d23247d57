"""An index never shows what a file said before it changed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from longspan.search.index import Index
from longspan.search.update import Report
from unit.search.folders import by_words
from unit.text import files


def texts(index: Index) -> set[str]:
    return {hit.text for hit in index.search("zebra", mode="bm25")}


def again(index: Index, folder: Path) -> Report:
    return index.add(folder / "docs", vectors=False, progress=False)


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return by_words(tmp_path, {"a.txt": "A zebra.", "b.txt": "A zebra too."})


def to_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def to_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def to_picture(path: Path) -> None:
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\r")


@pytest.mark.parametrize("change", [to_picture, to_folder, to_pipe, lambda path: path.write_bytes(b"")])
def test_a_file_that_is_no_text_any_more_is_forgotten(
    tmp_path: Path, index: Index, change: Callable[[Path], object]
) -> None:
    assert len(texts(index)) == 2
    change(tmp_path / "docs" / "a.txt")
    report = again(index, tmp_path)
    assert texts(index) == {"A zebra too."}
    assert (report.removed, report.changed) in ((1, 0), (0, 1))
    index.verify()


def test_a_file_that_changed_and_cannot_be_read_is_told_and_forgotten_until_it_can(tmp_path: Path) -> None:
    index = by_words(tmp_path, {"b.txt": "A zebra too."})
    path = tmp_path / "docs" / "a.docx"
    path.write_bytes(files.docx(files.paragraph("A zebra.")))
    again(index, tmp_path)
    whole = files.docx(files.paragraph("The new zebra."))
    path.write_bytes(whole[:100])
    report = again(index, tmp_path)
    assert [(file.name, report.removed) for file, _ in report.failed] == [("a.docx", 1)]
    assert texts(index) == {"A zebra too."}
    path.write_bytes(whole)
    again(index, tmp_path)
    assert texts(index) == {"A zebra too.", "The new zebra."}


@pytest.mark.parametrize("changed", [False, True])
def test_a_file_that_cannot_be_opened_is_kept_only_if_it_has_not_changed(
    tmp_path: Path, index: Index, changed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, open_ = tmp_path / "docs" / "a.txt", os.open

    def denied(name: str | Path, *rest: int) -> int:
        if Path(name) == path:
            raise PermissionError(13, "Permission denied")
        return open_(name, *rest)

    if changed:
        path.write_text("No more such animals.")
    monkeypatch.setattr(os, "open", denied)
    report = again(index, tmp_path)
    assert report.failed == [(path, "Permission denied")]
    assert report.removed == changed
    assert len(texts(index)) == 2 - changed
    monkeypatch.undo()
    report = again(index, tmp_path)
    assert (report.failed, report.added) == ([], int(changed))


def test_what_is_left_out_without_a_change_stays(tmp_path: Path) -> None:
    """A hidden file that was given by name, when its folder is looked through."""
    index = by_words(tmp_path, {"b.txt": "A zebra too."})
    path = tmp_path / "docs" / ".hidden.txt"
    path.write_text("A zebra.")
    index.add(path, vectors=False, progress=False)
    again(index, tmp_path)
    assert len(texts(index)) == 2
    path.write_text("Nothing.")
    again(index, tmp_path)
    assert texts(index) == {"A zebra too."}
