"""A rebuild: the old index serves until the new one is complete; whatever happens, one of them is whole."""

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from longspan.errors import CheckpointError, LongspanError
from longspan.search import rebuild as module
from longspan.search.database import database_of, databases
from longspan.search.index import Index
from longspan.search.lock import Busy
from longspan.search.rebuild import known, rebuilding, space
from longspan.search.store import Store
from unit.search.dying import DYING
from unit.search.folders import filled, stored, text, tiny


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return filled(tmp_path / "docs", 3)


HALF_DONE = """
import os, signal, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size = 1")
db.execute("BEGIN IMMEDIATE")
db.execute("UPDATE documents SET title = 'half done'")
db.executemany("INSERT INTO passages VALUES (?, 0, 1, '', ?)", ((i, "x" * 20000) for i in range(9, 99)))
os.kill(os.getpid(), signal.SIGKILL)
"""
"""What a process does that is killed while it commits."""


def numbers(index: Index) -> set[str]:
    """Which documents are found by their words."""
    return {
        hit.text.split(".")[0] for hit in index.search('"Document"', top=99, mode="bm25") if hit.start == 0
    }


def files_of(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_old_index_answers_until_the_new_one_is_complete_and_then_it_is_gone(
    docs: Path, tmp_path: Path
) -> None:
    with Index.open(tmp_path / "index", tiny()) as index:
        index.add(docs)
        index.remove(docs / "0.txt")
        with rebuilding(index.folder, tiny()) as new:
            new.add(docs)
            assert numbers(index) == {"Document 1", "Document 2"}
            with pytest.raises(Busy):
                index.add(docs, wait=0)
        assert numbers(index) == {"Document 0", "Document 1", "Document 2"}  # which was open all the time
        assert [hit.dense is None for hit in index.search("Rome", mode="dense", top=3)] == [False] * 3
        index.verify()
        generation = index._store.db.number("generation")
        assert files_of(index.folder) == [
            f"index-{generation}.sqlite",
            "index.lock",
            f"tokens-{generation}.bin",
            f"vectors-{generation}.bin",
        ]
        (docs / "new.txt").write_text(text(9), encoding="utf-8")
        assert index.add(docs).added == 1
        assert "Document 9" in numbers(Index.open(index.folder))


def test_a_reader_at_work_is_waited_for_and_a_late_one_gets_the_new_index(tmp_path: Path) -> None:
    """The flat files of the old index must not vanish from under a search."""
    old = Store(tmp_path / "index")
    stored(old, "old", ["river"], width=8, fill=1)
    with rebuilding(old.folder) as new:
        stored(new._store, "new", ["river", "bank"], width=8, fill=2)
    assert [entry.title for entry in old.entries()] == ["new"]
    assert (old.vectors() == 2).all()
    assert len(old.vectors()) == 3


def test_a_reader_that_does_not_end_keeps_the_old_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMEOUT", 0.1)
    old = Store(tmp_path / "index")
    stored(old, "old", ["river"], width=8)
    with old.db.snapshot():
        titles = [entry.title for entry in old.entries()]
        with pytest.raises(Busy, match="in use by another process"), rebuilding(old.folder, "m") as new:
            stored(new._store, "new", ["river"], width=8)
        assert [entry.title for entry in old.entries()] == titles == ["old"]
        assert len(old.vectors()) == 2
    with rebuilding(old.folder, "m") as new:
        assert [entry.title for entry in new._store.entries()] == ["new"], "what was built is not lost"
    assert [entry.title for entry in old.entries()] == ["new"]


def test_a_rebuild_that_fails_keeps_the_old_index_and_the_next_one_goes_on(
    docs: Path, tmp_path: Path
) -> None:
    tiny().save(tmp_path / "model")
    with Index.open(tmp_path / "index", tmp_path / "model") as index:
        index.add(docs)

        def stopped(name: str, begun: list[Path], tokens: str | None = None) -> None:
            with rebuilding(index.folder, tmp_path / "model", tokens=tokens) as new:
                assert new.files == begun
                new.add(docs / name)
                raise KeyboardInterrupt

        steps: list[tuple[str, list[Path], str | None]] = [
            ("0.txt", [], None),
            ("1.txt", [docs / "0.txt"], None),
            ("2.txt", [], "off"),  # what was begun in another way is of no use
        ]
        for name, begun, tokens in steps:
            with pytest.raises(KeyboardInterrupt):
                stopped(name, begun, tokens)
            assert len(index.files) == 3
            assert index.sizes["unfinished rebuild"] > 0
        index.verify()


@pytest.mark.parametrize("harm", ["garbage", "schema", "journal"])
def test_what_cannot_be_opened_is_replaced(tmp_path: Path, harm: str) -> None:
    folder = tmp_path / "index"
    old = Store(folder)
    stored(old, "old", ["river"], width=8)
    if harm == "schema":
        with old.db.transaction():
            old.db.put(schema="3", roots='["/docs"]')
    old.db.close()
    if harm != "schema":
        (folder / "index.sqlite").write_bytes(b"x" * 50_000)
    if harm == "journal":  # of the old file: SQLite must not play it back into the new one
        (folder / "index.sqlite-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"x" * 5000)
    with pytest.raises(LongspanError):
        Index.open(folder)
    assert known(folder).paths == ([Path("/docs"), Path("/old")] if harm == "schema" else [])
    with rebuilding(folder) as new:
        stored(new._store, "new", ["river"], width=8)
    with Index.open(folder) as index:
        index.verify()
        assert [hit.file.name for hit in index.search("river", mode="bm25")] == ["new"]
    assert len(list(folder.glob("*.bin"))) == 2
    assert not (folder / "index.sqlite-journal").exists()


def test_a_hot_journal_of_the_old_index_is_played_back_before_it_is_replaced(tmp_path: Path) -> None:
    """A writer that was killed while it committed, then a rebuild that fails: the old index is whole."""
    folder = tmp_path / "index"
    stored(Store(folder), "old", ["river"])
    if not hasattr(signal, "SIGKILL"):
        pytest.skip("needs SIGKILL")
    subprocess.run([sys.executable, "-c", HALF_DONE, str(folder / "index.sqlite")], check=False)
    assert (folder / "index.sqlite-journal").stat().st_size > 0
    with rebuilding(folder) as new:
        stored(new._store, "new", ["river"])
    with Index.open(folder) as index:
        index.verify()
        assert [hit.file.name for hit in index.search("river", mode="bm25")] == ["new"]


WORK = (
    DYING
    + """
from pathlib import Path
from dataclasses import replace
import numpy as np
from longspan.search.database import Database
from longspan.search.rebuild import rebuilding
from longspan.search.records import Entry, File, Row, Tables

for owner, names in ((os, ("replace", "fsync")), (Database, ("do", "do_many")), (Path, ("unlink", "rmdir"))):
    for name in names:
        counted(owner, name)
with rebuilding(Path(sys.argv[1]), "model") as new:
    store = new._store
    if not store.entries():
        with store.db.transaction():
            ids = store.add([(Entry(digest=b"new", title="new"), [Row(0, 1, "", "river new")] * 3)])
            store.put_files([File(Path("/new"), 1, 1, ids[b"new"])])
    for entry in store.pending():
        with store.db.transaction():
            made = Tables(np.full((4, 8), 2.0), np.full((6, 5), 2, np.uint8), np.array([2, 4, 6]))
            store.put_vectors([(replace(entry, n_tokens=6), made)])
"""
)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_kill_at_any_step_of_a_rebuild_leaves_the_old_or_the_new_index(tmp_path: Path) -> None:
    folder, titles = tmp_path / "index", list[str]()
    stored(Store(folder), "old", ["river old"] * 2, width=8, fill=1)
    step, ended = 1, False
    while not ended:
        command = [sys.executable, "-c", WORK, str(folder), str(step)]
        process = subprocess.run(command, stderr=subprocess.PIPE, check=False)
        assert process.returncode in (0, -signal.SIGKILL), process.stderr
        ended, step = process.returncode == 0, step + 3
        with Index.open(folder) as index:
            index.verify()
            (title,) = [entry.title for entry in index._store.entries()]
            assert (index._store.vectors() == {"old": 1, "new": 2}[title]).all()
            titles.append(title)
    assert titles == sorted(titles, reverse=True)
    assert {*titles} == {"old", "new"}
    assert not (folder / "rebuild").exists()
    assert len(list(folder.glob("*.bin"))) == 2


def test_the_space_that_a_rebuild_needs_is_that_of_the_old_index(tmp_path: Path) -> None:
    stored(Store(tmp_path / "index"), "old", ["river"] * 9, width=800)
    sizes = sum(path.stat().st_size for path in (tmp_path / "index").iterdir())
    assert space(tmp_path / "index")[0] == sizes
    assert space(tmp_path / "index")[1] > 0


def test_a_new_index_is_made_by_what_is_written_and_by_nothing_else(tmp_path: Path) -> None:
    with Index.open(tmp_path / "typo") as index:
        assert (index.files, len(index), index.model) == ([], 0, None)
        with pytest.raises(
            ValueError, match=r"`index` must be a folder that holds an index, .*typo'\. Nothing is"
        ):
            index.search("river")
        with pytest.raises(ValueError, match="a folder that holds an index"):
            index.verify()
        with pytest.raises(ValueError, match="files and folders that exist"):
            index.add(tmp_path / "nowhere")
    assert not (tmp_path / "typo").exists()


def test_a_database_that_was_never_finished_is_empty_and_can_be_filled(docs: Path, tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    sqlite3.connect(tmp_path / "index" / "index.sqlite").close()  # killed before the first transaction
    with Index.open(tmp_path / "index") as index:
        assert index.files == []
        assert index.add(docs, vectors=False).added == 3
        index.verify()


def test_damage_is_still_damage(tmp_path: Path) -> None:
    stored(Store(tmp_path / "index"), "old", ["river"])
    (tmp_path / "index" / "index.sqlite").write_bytes(b"x" * 5000)
    with pytest.raises(CheckpointError, match="is damaged"):
        Index.open(tmp_path / "index")


def test_one_that_has_the_old_database_open_leaves_the_journal_of_the_new_one_alone(tmp_path: Path) -> None:
    """A writer killed while it commits to the new index, then a search by who has read the old one."""
    if not hasattr(signal, "SIGKILL"):
        pytest.skip("needs SIGKILL")
    folder = tmp_path / "index"
    reader = Store(folder)
    stored(reader, "old", ["river"], width=8)
    idle = reader.db._connections._idle[-1].db
    with rebuilding(folder) as new:
        stored(new._store, "new", ["river"], width=8)
    current = database_of(folder)
    subprocess.run([sys.executable, "-c", HALF_DONE, str(current)], check=False)
    journal = current.with_name(f"{current.name}-journal")
    before = journal.read_bytes()
    idle.execute("SELECT * FROM sqlite_master").fetchall()  # as if it had been located before the rebuild
    assert journal.read_bytes() == before
    assert [entry.title for entry in reader.entries()] == ["new"]
    assert not journal.exists()  # played back by the right one
    with Index.open(folder) as index:
        index.verify()


def test_a_rebuild_that_is_killed_before_the_old_database_is_deleted_is_tidied(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    stored(Store(folder), "old", ["river"], width=8)
    kept = database_of(folder).read_bytes()
    with rebuilding(folder) as new:
        stored(new._store, "new", ["river"], width=8)
    (folder / "index.sqlite").write_bytes(kept)
    with Index.open(folder) as index:
        assert [hit.file.name for hit in index.search("river", mode="bm25")] == ["new"]
        index._store.tidy()
    assert [path.name for path in databases(folder)] == [database_of(folder).name] != ["index.sqlite"]
