"""Ordinary mistakes lose nothing: empty disks, mistyped names, rebuilds, indexes that cannot be written."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.test_search import told
from longspan.search.index import Index
from unit.search.folders import filled, tiny

WORDS = ("--words-only", "--index", "./ix")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSPAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    filled(tmp_path / "docs", 4)


def files() -> list[str]:
    with Index.open("ix") as index:
        return [path.name for path in index.files]


def emptied() -> None:
    """The mount point of a disk that is not there."""
    Path("docs").rename("elsewhere")
    Path("docs").mkdir()


def test_an_empty_mount_point_forgets_nothing_unless_told_to(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "index", "docs", *WORDS)
    emptied()
    for paths in ((), ("docs",)):
        out, err = told(capsys, "index", *paths, *WORDS, status=3)
        assert "4 missing, but kept" in out
        assert f"4 files are gone, such as {Path('docs/0.txt').absolute()}" in err
        assert len(files()) == 4
    out, err = told(capsys, "search", "Document", "docs", "--mode", "bm25", "--index", "ix")
    assert "docs/0.txt" in out
    assert "the index keeps them" in err
    assert "4 removed" in told(capsys, "index", *WORDS, "--yes")[0]
    assert files() == []


def test_a_folder_that_is_a_small_part_of_the_index_is_kept_as_well(
    capsys: pytest.CaptureFixture[str],
) -> None:
    filled(Path("more"), 20)
    told(capsys, "index", "docs", "more", *WORDS)
    emptied()
    assert "4 missing, but kept" in told(capsys, "index", *WORDS, status=3)[0]


def test_renamed_files_are_not_missing(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "index", "docs", *WORDS)
    for file in list(Path("docs").iterdir()):
        file.rename(file.with_suffix(".md"))
    assert "4 moved" in told(capsys, "index", *WORDS)[0]
    assert files() == ["0.md", "1.md", "2.md", "3.md"]


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("n\n", 4), ("", 4)])
def test_on_a_terminal_the_user_is_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answer: str, left: int
) -> None:
    told(capsys, "index", "docs", *WORDS)
    emptied()
    typed = io.StringIO(answer)
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", typed)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    _, err = told(capsys, "index", *WORDS, status=3 if left else 0)
    assert "4 files of the 4 of the index will be forgotten" in err
    assert "Forget them? [y/N]" in err
    assert len(files()) == left


@pytest.mark.parametrize("how", [("--remove", "docs"), ("--prune",)])
def test_to_forget_more_than_half_needs_a_flag(
    capsys: pytest.CaptureFixture[str], how: tuple[str, ...]
) -> None:
    told(capsys, "index", "docs", *WORDS)
    emptied()
    _, err = told(capsys, "index", *how, *WORDS, status=2)
    assert "must be at most half of the files of the index, but is '4 of 4" in err
    assert "Use --yes" in err
    assert len(files()) == 4
    told(capsys, "index", *how, *WORDS, "--yes")
    assert files() == []


def test_an_index_made_in_python_is_rebuilt_from_what_it_was_filled_with(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Index.open("ix") as index:
        index.add("docs", vectors=False)
        with index._store.db.transaction():
            index._store.db.put(roots="[]")  # as indexes had it that were made in Python
    _, err = told(capsys, "index", "--rebuild", *WORDS)
    assert "a new index is built beside the old one" in err
    assert len(files()) == 4


def test_a_rebuild_without_its_files_keeps_the_old_index(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "index", "docs", *WORDS)
    emptied()
    Path("docs/new.txt").write_text("A text.")
    _, err = told(capsys, "index", "--rebuild", *WORDS, status=2)
    assert "'4 of 4, such as" in err
    assert "The old index is kept. Use --yes" in err
    assert len(files()) == 4
    shutil.rmtree("docs")
    _, err = told(capsys, "index", "--rebuild", *WORDS, status=2)
    assert "was filled with is there" in err
    assert len(files()) == 4


def test_a_rebuild_keeps_the_model_and_the_kind_of_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    tiny().save("model")
    options = ("--index", "./ix")
    told(capsys, "index", "docs/0.txt", *options, "--model", "model", "--tokens", "off")
    told(capsys, "index", "--rebuild", *options)
    with Index.open("ix") as index:
        assert (index.model, index.tokens) == (str(Path("model").absolute()), "off")


def test_a_rebuild_says_before_it_begins_that_there_is_no_room(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told(capsys, "index", "docs", *WORDS)
    monkeypatch.setattr("longspan.search.rebuild.space", lambda folder: (2_000_000, 1_000))
    _, err = told(capsys, "index", "--rebuild", *WORDS, status=1)
    assert "needs about 2.0 MB free beside the old index, but there are 1.0 KB. Make room" in err


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_rebuild_keeps_the_old_index(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "index", "docs", *WORDS)
    work = """
import os, signal, sys
from longspan.cli import main
from longspan.search import rebuild
rebuild._put_in_place = lambda *given: os.kill(os.getpid(), signal.SIGKILL)
main(sys.argv[1:])
"""
    command = [sys.executable, "-c", work, "index", "--rebuild", *WORDS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert len(files()) == 4
    assert "4 unchanged" in told(capsys, "index", *WORDS, "--check")[0]
    assert "4 unchanged" in told(capsys, "index", "--rebuild", *WORDS)[0]  # which goes on with what was built
    assert not Path("ix/rebuild").exists()


def test_a_mistyped_index_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "index", "docs", "--words-only", "--index", "contracts")
    _, err = told(capsys, "search", "river", "--index", "contarcts", status=2)
    assert "Did you mean contracts?" in err
    _, err = told(capsys, "search", "river", "docs", "--mode", "bm25", "--index", "contarcts")
    assert "contarcts is a new index. Did you mean contracts?" in err


def test_a_check_says_that_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "index", "docs", *WORDS)
    assert "; checked: the whole index is as it was written" in told(capsys, "index", "--check", *WORDS)[0]
    assert json.loads(told(capsys, "index", "--check", *WORDS, "--json")[0])["checked"] is True


def test_what_is_skipped_is_counted_by_reason_and_a_file_is_named_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("a.bin", "b.bin", "c.xyz", "d.png"):
        Path("docs", name).write_bytes(b"\0\1\2")
    Path("docs/broken.pdf").write_bytes(b"%PDF-1.4 no more than this")
    out, err = told(capsys, "index", "docs", "docs", "docs/broken.pdf", *WORDS, status=3)
    assert "4 added, 4 skipped (3 with unknown suffix: .bin, .xyz; 1 as pictures, see --ocr)" in out
    assert err.count("broken.pdf") == 1


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """An index on a disk that cannot be written, also by root."""
    with Index.open("ix") as index:
        index.add("docs", vectors=False)
    folder = tmp_path / "mount"
    folder.mkdir()
    commands = [["mount", "--bind", "ix", str(folder)], ["mount", "-o", "remount,ro,bind", str(folder)]]
    try:
        for command in commands:
            subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        subprocess.run(["umount", str(folder)], check=False, capture_output=True)
        pytest.skip("a read-only mount needs root and Linux")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(os.name == "nt", reason="needs mount")
def test_a_read_only_index_is_searched_and_says_that_it_was_not_updated(
    capsys: pytest.CaptureFixture[str], read_only: Path
) -> None:
    Path("docs/new.txt").write_text("A new text about a zebra.")
    options = ("--index", str(read_only))
    for mode in ("bm25", "hybrid"):
        out, err = told(capsys, "search", "Document 1", "docs", "--mode", mode, *options, status=None)
        assert "1. docs/" in out
        assert (
            "cannot be written: attempt to write a readonly database. What it holds so far is searched" in err
        )
    out, err = told(capsys, "search", "Document 1", *options, status=None)
    assert "1. docs/" in out
    assert "cannot be written: its folder is read-only. What it holds so far is searched" in err
    _, err = told(capsys, "index", "docs", "--words-only", *options, status=1)
    assert "cannot be written" in err
