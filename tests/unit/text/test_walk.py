"""Walking folders finds what can be read, in order, once, and says what it leaves out."""

import os
from pathlib import Path

import pytest

from longspan.errors import InputError
from longspan.text.walk import walk


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("b.md", "a/z.txt", "a/y.pdf", "a/deep/x.py", "README", ".hidden.txt", ".git/config.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\0")
    (tmp_path / "program").write_bytes(b"\x7fELF\0")
    (tmp_path / "video.ts").write_bytes(b"G\0\x11")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "c.txt").symlink_to(tmp_path / "a" / "z.txt")
    (tmp_path / "nowhere.txt").symlink_to("absent")
    os.mkfifo(tmp_path / "pipe.txt")
    return tmp_path


def test_readable_files_come_once_and_in_order(tree: Path) -> None:
    left_out: dict[str, str] = {}
    found = walk([tree], skipped=lambda path, reason: left_out.update({path.name: reason}))
    assert [str(path.relative_to(tree)) for path in found] == [
        "README",
        "a/deep/x.py",
        "a/y.pdf",
        "a/z.txt",
        "b.md",
    ]
    assert left_out == {
        "loop": "it is a link to a folder",
        "c.txt": "it was found before under another name or path",
        "nowhere.txt": "it is not a regular file, or a link to nothing",
        "pipe.txt": "it is not a regular file, or a link to nothing",
        "picture.png": "it is a picture, which only OCR (--ocr) reads",
        "program": "it is not text, nor of a format that Longspan reads",
        "video.ts": "it looks binary",
    }


def test_hidden_files_come_when_asked_for(tree: Path) -> None:
    names = [path.name for path in walk([tree], hidden=True)]
    assert {".hidden.txt", "config.txt"} <= set(names)


def test_files_given_by_name_are_not_judged(tree: Path) -> None:
    given = [tree / "picture.png", tree / ".hidden.txt", tree / "picture.png"]
    assert list(walk(given)) == given[:2]


def test_a_pipe_given_by_name_is_reported_and_not_waited_for(tree: Path) -> None:
    failed: dict[str, str] = {}
    paths = walk([tree / "pipe.txt", tree / "b.md"], failed=lambda path, why: failed.update({path.name: why}))
    assert list(paths) == [tree / "b.md"]
    assert failed == {"pipe.txt": "it is a pipe, a device or a socket, not a file"}


def test_a_path_that_does_not_exist_is_an_error(tree: Path) -> None:
    with pytest.raises(InputError, match="files and folders that exist"):
        list(walk([tree / "absent"]))
    with pytest.raises(InputError, match="Put it into a list"):
        list(walk(str(tree)))
