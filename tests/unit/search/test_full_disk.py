"""A full disk is a clear error; what was committed stays, and work goes on when there is room again."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from longspan.errors import LongspanError
from longspan.search.compaction import compact, verify
from longspan.search.index import Index
from longspan.search.store import Store
from unit.search.folders import stored


@contextmanager
def full_at(limit: int) -> Iterator[None]:
    """No file can grow beyond some bytes."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


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
