"""A full disk is a clear error; what was committed stays, and work goes on when there is room again."""

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from longspan.errors import LongspanError
from longspan.search.compaction import compact
from longspan.search.index import Index
from longspan.search.rebuild import rebuilding
from longspan.search.store import Store
from longspan.search.verify import verify
from machine import full_at
from unit.search.folders import stored, written


@pytest.mark.parametrize("width", [8, 1024])  # the database is larger than the vectors, and smaller
def test_a_full_disk_is_an_error_that_loses_nothing_and_work_goes_on_when_there_is_room(
    tmp_path: Path, width: int
) -> None:
    errors, late = [], [f"delta {i} late{i} " * 60 for i in range(60)]
    for number, limit in enumerate(range(100_000, 400_000, 50_000)):
        store = Store(tmp_path / f"index{number}")
        for name in "012":
            stored(store, name, [f"river {name} {i} " * 30 for i in range(20)], width=width, fill=int(name))
        try:
            with full_at(limit):
                stored(store, "9", late, width=width, fill=9)
                with store.db.transaction():
                    store.remove([Path("/0"), Path("/1"), Path("/2")])
                    store.remove_orphans()
                compact(store)
        except LongspanError as error:
            errors.append(str(error))
        verify(store)
        titles = {entry.title for entry in store.entries()}
        assert titles & {"9"} or titles == {*"012"}
        stored(store, "10", late, width=width, fill=10)
        compact(store)
        verify(store)
        assert len(Index.open(store.folder).search("delta", 999, mode="bm25")) == 60 * (1 + ("9" in titles))
    assert 0 < len(errors) < 6
    assert all("cannot be used: " in error for error in errors)


def test_a_disk_that_is_full_of_vectors_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "index")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LongspanError) as raised:
        stored(store, "1", ["river"], width=8)
    repair = "Make room on the disk and run this again: what was done is kept."
    assert str(raised.value).endswith(f"cannot be used: {os.strerror(errno.ENOSPC)}. {repair}")
    (entry,) = store.pending()
    assert entry.title == "1"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("to mount a small disk needs root and Linux")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """A file that takes all that is left of a disk."""
    ballast = folder / "ballast"
    with suppress(OSError), ballast.open("wb") as file:
        while True:
            file.write(b"x" * 4096)
            file.flush()
    return ballast


def test_on_a_full_disk_the_index_is_kept_and_searched_and_work_goes_on_when_there_is_room(
    tmp_path: Path, small_disk: Path
) -> None:
    docs = written(tmp_path / "docs", {"old.txt": "A river."})
    with Index.open(small_disk / "index") as index:
        index.add(docs, vectors=False)
        ballast = fill(small_disk)
        written(docs, {f"{number}.txt": f"delta {number} " * 5000 for number in range(9)})
        with pytest.raises(
            LongspanError, match=r"cannot be used: .* Make room on the disk and run this again"
        ):
            index.add(docs, vectors=False)
        assert [hit.file.name for hit in index.search("river", mode="bm25")] == ["old.txt"]
        index.verify()
        ballast.unlink()
        assert index.add(docs, vectors=False).added == 9
        index.verify()


def test_a_rebuild_that_fills_the_disk_keeps_the_old_index(tmp_path: Path, small_disk: Path) -> None:
    docs = written(tmp_path / "docs", {"old.txt": "A river."})
    with Index.open(small_disk / "index") as index:
        index.add(docs, vectors=False)
        written(docs, {f"{number}.txt": f"delta {number} " * 30_000 for number in range(9)})
        with (
            pytest.raises(LongspanError, match="Make room on the disk"),
            rebuilding(index.folder) as new,
        ):
            new.add(docs, vectors=False)
        assert not (index.folder / "rebuild").exists()
        assert [hit.file.name for hit in index.search("river", mode="bm25")] == ["old.txt"]
        index.verify()
        with rebuilding(index.folder) as new:
            new.add(docs / "0.txt", vectors=False)
        assert index.files[0] == docs / "0.txt"


def test_a_full_disk_is_an_error_also_for_a_new_index(tmp_path: Path, small_disk: Path) -> None:
    fill(small_disk)
    docs = written(tmp_path / "docs", {"new.txt": "A river."})
    with Index.open(small_disk / "index") as index, pytest.raises(LongspanError, match=r"disk"):
        index.add(docs, vectors=False)
