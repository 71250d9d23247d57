"""One index, several users: writers take turns, readers see whole states, also where they cannot write."""

import errno
import os
import re
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from longspan.errors import LongspanError
from longspan.search import connections
from longspan.search.compaction import compact
from longspan.search.index import Index
from longspan.search.lock import Busy, ReadOnly, writing
from longspan.search.records import Entry, Row
from longspan.search.store import Store
from longspan.search.verify import verify
from unit.search.folders import filled, stored, text, tiny

HOLD = """
import sys, time
from pathlib import Path
from longspan.search.lock import writing
with writing(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


def holder(folder: Path, seconds: float) -> "subprocess.Popen[str]":
    """Another process that changes the index for some time."""
    command = [sys.executable, "-c", HOLD, str(folder), str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_writer_waits_as_long_as_it_is_told_to(tmp_path: Path) -> None:
    index, docs = Index.open(tmp_path / "index"), filled(tmp_path / "docs")
    with holder(index.folder, 60) as process:
        with pytest.raises(Busy, match="is being changed by another process"):
            index.add(docs, vectors=False, wait=0)
        assert index.files == []
        began = time.monotonic()
        with pytest.raises(Busy):
            index.embed(wait=0.5)
        assert time.monotonic() - began >= 0.5
        process.kill()  # the system frees the lock of a dead process
        process.wait()
        assert index.add(docs, vectors=False, wait=0).added == 4
    with holder(index.folder, 0.4):
        assert index.add(docs, vectors=False).unchanged == 4


def test_a_writer_keeps_others_out_until_it_is_done_or_fails(tmp_path: Path) -> None:
    def fail() -> None:
        with writing(tmp_path):
            with pytest.raises(Busy), writing(tmp_path, 0):
                pytest.fail("two writers")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with writing(tmp_path, 0):
        pass


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP, errno.EIO])
def test_a_folder_without_locks_is_an_error_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    fcntl = pytest.importorskip("fcntl")

    def refuse(file: int, operation: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    reason = rf"`{re.escape(str(tmp_path))}` cannot be locked: {os.strerror(code)}\. Keep it on a disk"
    with pytest.raises(LongspanError, match=reason), writing(tmp_path, 1):
        pytest.fail("not locked")


def test_no_writer_goes_on_without_a_lock_that_it_might_have_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(path: object, *rest: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "open", exhausted)
    with pytest.raises(LongspanError, match="cannot be locked: Too many open files"), writing(tmp_path):
        pytest.fail("not locked")


def test_two_open_indexes_see_what_either_writes(tmp_path: Path) -> None:
    docs = filled(tmp_path / "docs", 2)
    first, second = (Index.open(tmp_path / "index", tiny()) for _ in range(2))
    assert (second.files, len(second)) == ([], 0)
    first.add(docs)
    assert len(second.search("Rome")) > 0
    (docs / "new.txt").write_text(text(7), encoding="utf-8")
    second.add(docs)
    assert len(first.files) == 3
    assert docs / "new.txt" in {hit.file for hit in first.search("Document 7", mode="bm25")}


def test_readers_see_whole_states_while_rows_move(tmp_path: Path) -> None:
    """A writer adds and removes documents, so that rows move to new files all the time."""
    folder = tmp_path / "index"
    stored(Store(folder), "stays", ["river bank", "deep river"], width=8)
    stop, moves = threading.Event(), list[int]()

    def write() -> None:
        store = Store(folder)
        for number in range(400):
            if stop.is_set():
                break
            stored(store, f"n{number}", ["river one", "river two", "no more"], width=8)
            with store.db.transaction():
                store.remove([Path("/", f"n{number}")])
                store.remove_orphans()
            compact(store)
            moves.append(store.db.number("generation"))
        store.db.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with Index.open(folder) as index:
            for _ in range(500):
                if len(moves) > 20:
                    break
                assert index.share_read > 0
                names = [hit.file.name for hit in index.search("river", top=9, mode="bm25")]
                assert names.count("stays") == 2
                assert len(names) in (2, 4)
                assert len(index) in (2, 5)
    finally:
        stop.set()
        writer.join()
    assert moves[-1] > 5
    verify(Store(folder))


def test_readers_are_not_shut_out_while_a_large_transaction_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longspan.search.connections.TIMEOUT", 0.1)
    writer = Store(tmp_path / "index")
    stored(writer, "small", ["river bank"])
    large = [Row(0, 1, "", f"river {number} " + "deep " * 4000) for number in range(500)]
    early = Index.open(tmp_path / "index")
    with writer.db.transaction():
        writer.add([(Entry(digest=b"large", title="large"), large)])
        for index in (early, Index.open(tmp_path / "index")):
            assert len(index.search("river", mode="bm25")) == 1


def test_an_index_that_cannot_be_written_can_be_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = filled(tmp_path / "docs")
    with Index.open(tmp_path / "index", tiny()) as index:
        index.add(docs)
        expected = [hit.start for hit in index.search("the river")]

    open_ = os.open

    def denied(path: str, flags: int, *rest: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise PermissionError(13, "Permission denied", str(path))
        return open_(path, flags, *rest)

    monkeypatch.setattr(os, "open", denied)
    connect = connections._connected

    def read_only(path: Path | None, **named: bool) -> sqlite3.Connection:
        db = connect(path, **named)
        db.execute("PRAGMA query_only = true")
        return db

    monkeypatch.setattr(connections, "_connected", read_only)
    with Index.open(tmp_path / "index", tiny()) as index:
        assert [hit.start for hit in index.search("the river")] == expected
        assert index.add(docs).unchanged == 4
        (docs / "0.txt").unlink()
        with pytest.raises(ReadOnly, match="cannot be written: attempt to write a readonly database"):
            index.add(docs)
        assert len(index.files) == 4
