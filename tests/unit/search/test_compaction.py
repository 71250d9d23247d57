"""Compaction: rows move and parts are joined, a little at a time, and nothing stale stays or comes back."""

import tracemalloc
from pathlib import Path

import pytest

from longspan.search import compaction
from longspan.search.compaction import compact
from longspan.search.index import Index
from longspan.search.store import Store
from longspan.search.verify import verify
from unit.search.folders import filled, stored


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "index")


def removed(store: Store, *names: str) -> None:
    with store.db.transaction():
        store.remove([Path("/", name) for name in names])
        store.remove_orphans()


def flat_files(store: Store) -> set[tuple[str, int, int]]:
    stats = [(path.name, path.stat()) for path in store.folder.glob("*.bin")]
    return {(name, stat.st_ino, stat.st_mtime_ns) for name, stat in stats}


def test_rows_move_one_document_at_a_time(store: Store) -> None:
    width, passages = 8192, 15
    for number in range(32):
        stored(store, f"n{number}", [f"river {i}" for i in range(passages)], width=width, fill=number)
    removed(store, *(f"n{number}" for number in range(16)))
    tracemalloc.start()
    compact(store)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    size = 2 * width * (passages + 1)
    assert store.sizes()["vectors"] == 16 * size
    assert peak < 6 * size
    for entry in store.entries():
        assert (store.vectors()[entry.rows] == int(entry.title[1:])).all()
    verify(store)


def test_parts_of_postings_are_joined_without_touching_vectors(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "PARTS", 5)
    for number in range(7):
        stored(store, f"n{number}", [f"river {number}", "bank"] * 4, width=8, fill=number)
    removed(store, "n3")
    expected = [(hit.file, hit.text) for hit in Index.open(store.folder).search("river 5", mode="bm25")]
    files = flat_files(store)
    rows = store.db.number("rows")
    compact(store)
    assert flat_files(store) == files
    assert len(files) == 2
    assert (store.db.number("parts"), store.db.number("rows")) == (1, rows)
    assert store.db.rows("SELECT max(n) FROM (SELECT count(*) AS n FROM postings GROUP BY term)") == [(1,)]
    assert [
        (hit.file, hit.text) for hit in Index.open(store.folder).search("river 5", mode="bm25")
    ] == expected
    verify(store)


def test_parts_are_joined_also_where_files_are_only_added_and_no_model_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "PARTS", 3)
    docs = filled(tmp_path / "docs", 8)
    with Index.open(tmp_path / "index") as index:
        for file in sorted(docs.iterdir()):
            index.add(file, vectors=False)
            assert index._store.db.number("parts") <= 3
        index.verify()


def test_postings_are_joined_in_several_transactions(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "BATCH", 64)
    for number in range(4):
        stored(store, f"n{number}", [f"river {number} w{i} z{i}" for i in range(9)])
    removed(store, "n0", "n2")
    compact(store)
    assert store.db.number("rows") == 20
    assert store.postings("w4").rows.tolist() == [5, 15]
    verify(store)


def test_a_compaction_that_fails_leaves_no_files_behind(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        stored(store, f"n{number}", ["river"] * 3, width=8)
    removed(store, "n0", "n1")
    with monkeypatch.context() as patched:
        patched.setattr(compaction, "_replace", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            compact(store)
    assert sorted(path.name for path in store.folder.glob("*.bin")) == ["tokens-0.bin", "vectors-0.bin"]
    assert not store.db.rows("SELECT 1 FROM sqlite_master WHERE name = 'new_postings'")
    verify(store)
    compact(store)
    assert store.db.number("rows") == 8


def test_a_state_that_another_process_changed_is_not_replaced(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        stored(store, f"n{number}", ["river"] * 3, width=8)
    removed(store, "n0", "n1")
    join = compaction._join

    def disturbed(own: Store, place: object) -> None:
        join(own, place)  # type: ignore[arg-type]
        stored(Store(own.folder), "late", ["river delta"], width=8)

    monkeypatch.setattr(compaction, "_join", disturbed)
    compact(store)
    assert len(Index.open(store.folder).search("delta", mode="bm25")) == 1
    verify(store)


@pytest.mark.parametrize("name", ["vectors", "tokens"])
def test_what_a_killed_compaction_left_does_not_come_back_when_all_is_cleared(
    store: Store, name: str
) -> None:
    stored(store, "old", ["river"] * 3, width=8)
    (store.folder / f"{name}-1.bin").write_bytes(b"stale" * 1000)
    store.clear()
    assert not list(store.folder.glob("*.bin"))
    stored(store, "new", ["river"] * 2, width=8)
    assert len(store.vectors()) == 3
    assert len(store.tokens()) == 4
    verify(store)


def test_a_table_is_emptied_without_its_pages_being_read_into_memory(store: Store) -> None:
    stored(store, "large", ["river " * 5000] * 100)
    with store.db.transaction():
        store.db.do("DELETE FROM passages")
        journal = store.folder / "index.sqlite-journal"  # the pages that were changed, as they were
        assert journal.stat().st_size < store.sizes()["text and words"] / 10


def test_all_is_cleared_where_space_cannot_be_given_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(store, "old", ["river"] * 3, width=8)
    monkeypatch.setattr("longspan.search.connections.TIMEOUT", 0.1)
    store = Store(store.folder)  # which does not wait
    shrink, tried = store.db.shrink, list[bool]()

    def beside_a_reader() -> None:
        with Store(store.folder).db.snapshot():
            tried.append(True)
            shrink()

    monkeypatch.setattr(store.db, "shrink", beside_a_reader)
    store.clear()
    assert tried
    assert store.entries() == []
    stored(store, "new", ["river"] * 2, width=8)
    verify(store)
