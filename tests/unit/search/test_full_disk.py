"""A full disk is a clear error; what was committed stays, and work goes on when there is room again."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from longspan.errors import LongspanError
from longspan.search.compaction import compact, verify
from longspan.search.index import Index
from longspan.search.store import Store
from machine import disk
from unit.search.folders import stored

LATE = [f"delta {i} late{i} " * 60 for i in range(60)]
MEGABYTE = 1 << 20


@contextmanager
def limited(_: Path, limit: int) -> Iterator[None]:
    """No file can grow beyond some bytes: what a quota of the process refuses."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def filled(folder: Path, room: int) -> Iterator[None]:
    """The disk has some bytes left."""
    state = os.statvfs(folder)
    with (folder / "filler").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, state.f_bavail * state.f_frsize - room))
    try:
        yield
    finally:
        (folder / "filler").unlink()


Scarce = Callable[[Path, int], AbstractContextManager[None]]


def interrupted(folder: Path, number: int, width: int, scarce: Scarce, room: int) -> str:
    """Add to an index where room is scarce, then with room again; nothing may be lost. The error, or ""."""
    store, error = Store(folder / f"index{number}"), ""
    for name in "012":
        stored(store, name, [f"river {name} {i} " * 30 for i in range(20)], width=width, fill=int(name))
    try:
        with scarce(folder, room):
            stored(store, "9", LATE, width=width, fill=9)
            with store.db.transaction():
                store.remove([Path("/0"), Path("/1"), Path("/2")])
                store.remove_orphans()
            compact(store)
    except LongspanError as told:
        error = str(told)
    verify(store)
    titles = {entry.title for entry in store.entries()}
    assert titles & {"9"} or titles == {*"012"}
    stored(store, "10", LATE, width=width, fill=10)
    compact(store)
    verify(store)
    with Index.open(store.folder) as index:
        assert len(index.search("delta", 999, mode="bm25")) == 60 * (1 + ("9" in titles))
    store.db.close()
    return error


@pytest.mark.parametrize("width", [8, 1024])  # the database is larger than the vectors, and smaller
def test_files_that_may_not_grow_lose_nothing_and_work_goes_on(tmp_path: Path, width: int) -> None:
    limits = range(100_000, 400_000, 50_000)
    errors = [interrupted(tmp_path, i, width, limited, limit) for i, limit in enumerate(limits)]
    assert 0 < sum(map(bool, errors)) < len(errors)
    assert all("cannot be used: " in error for error in errors if error)


@pytest.mark.parametrize("width", [8, 1024])
def test_a_disk_that_is_full_loses_nothing_and_work_goes_on_when_there_is_room(
    tmp_path: Path, width: int
) -> None:
    errors = []
    for number, room in enumerate((0, 30_000, 100_000, 200_000, 400_000, 2_000_000)):
        with disk(tmp_path / f"disk{number}", 8 * MEGABYTE) as folder:
            errors.append(interrupted(folder, number, width, filled, room))
    assert errors[0]
    assert not errors[-1]
    repair = "Make room on the disk and run this again: what was done is kept."
    assert all(error.endswith(repair) for error in errors if error)


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
