"""One index and several threads: all search at once, writers take turns, and no one is told of damage."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from longspan.errors import CheckpointError, LongspanError
from longspan.search.index import Index
from longspan.search.own_model import OwnModel
from longspan.search.store import Store
from unit.search.folders import by_words, filled, stored, text, tiny

MODES = ("hybrid", "dense", "bm25")


def test_threads_that_share_an_index_find_what_one_thread_finds(tmp_path: Path) -> None:
    with Index.open(tmp_path / "index", tiny()) as index, ThreadPoolExecutor(4) as pool:
        index.add(filled(tmp_path / "docs", 3))
        asked = [(query, mode) for query in ("the river", "Rome") for mode in MODES] * 2

        def found(query_and_mode: tuple[str, str]) -> list[tuple[Path, int, float]]:
            query, mode = query_and_mode
            return [(hit.file, hit.start, hit.score) for hit in index.search(query, mode=mode)]

        expected = [found(each) for each in asked]
        assert list(pool.map(found, asked)) == expected


def test_threads_search_while_others_write(tmp_path: Path) -> None:
    """Each of two writers has a folder; a reader never sees a half of one."""
    folders = [filled(tmp_path / name, 2) for name in ("a", "b")]
    with Index.open(tmp_path / "index") as index:
        index.add(folders, vectors=False)
        stop, wrong = threading.Event(), list[BaseException]()

        def guarded(work: Callable[[], None]) -> Callable[[], None]:
            def run() -> None:
                try:
                    work()
                except BaseException as error:
                    wrong.append(error)
                    stop.set()

            return run

        def write(folder: Path) -> None:
            for number in range(12):
                (folder / "1.txt").write_text(text(number + 10), encoding="utf-8")
                index.add(folder, vectors=False)
                found = index.search(f'"Document {number + 10}."', mode="bm25", inside=folder)
                assert [hit.file for hit in found] == [folder / "1.txt"]

        def read() -> None:
            while not stop.is_set():
                hits = index.search("document", top=99, mode="bm25")
                assert {hit.file for hit in hits} | {file for hit in hits for file in hit.same} == {
                    *index.files
                }
                assert len(index.files) == 4

        writers = [threading.Thread(target=guarded(partial(write, each))) for each in folders]
        readers = [threading.Thread(target=guarded(read)) for _ in range(3)]
        for thread in [*writers, *readers]:
            thread.start()
        for thread in writers:
            thread.join()
        stop.set()
        for thread in readers:
            thread.join()
        assert not wrong
        index.verify()


def test_a_model_is_loaded_once_for_all_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny().save(tmp_path / "model")
    with Index.open(tmp_path / "index", tmp_path / "model") as index:
        index.add(filled(tmp_path / "docs", 2))
    loads = []
    load = OwnModel._load
    monkeypatch.setattr(OwnModel, "_load", lambda self: loads.append(1) or load(self))  # type: ignore[func-returns-value]
    with Index.open(tmp_path / "index") as index, ThreadPoolExecutor(4) as pool:
        assert all(list(pool.map(index.search, ["Rome", "river", "Paris", "Thames"])))
    assert len(loads) == 1


def test_a_closed_index_says_so_and_is_not_called_damaged(tmp_path: Path) -> None:
    index = by_words(tmp_path, {"a.txt": "A river."})
    index.close()
    with pytest.raises(LongspanError, match=r"was closed\. Open it again") as raised:
        index.search("river", mode="bm25")
    assert not isinstance(raised.value, CheckpointError)


def test_an_index_is_closed_when_the_last_thread_is_done_with_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "index")
    stored(store, "a", ["river"])
    with store.db.snapshot():
        other = threading.Thread(target=store.db.close)
        other.start()
        other.join()
        assert len(store.entries()) == 1
    with pytest.raises(LongspanError, match="was closed"):
        store.entries()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_has_connections_of_its_own(tmp_path: Path) -> None:
    store = Store(tmp_path / "index")
    stored(store, "a", ["river"])
    child = os.fork()
    if child == 0:
        try:
            stored(store, "b", ["river"])
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert len(store.entries()) == 2


def test_a_healthy_index_is_checked_while_another_thread_compacts(tmp_path: Path) -> None:
    docs = filled(tmp_path / "docs", 6)
    with Index.open(tmp_path / "index", tiny()) as index:
        index.add(docs)
        checked = list[bool]()

        def check() -> None:
            for _ in range(4):
                Index.open(index.folder).verify()
                checked.append(True)

        thread = threading.Thread(target=check)
        thread.start()
        for number in range(6):
            index.remove(docs / f"{number}.txt")  # dead rows are more than a quarter again and again
        thread.join()
        assert len(checked) == 4
