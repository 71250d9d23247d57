"""A store: rows inserted many at a time, and files that are put, put again and removed."""

from pathlib import Path

import pytest

from longspan.search.database import VARIABLES, Database
from longspan.search.records import File
from longspan.search.store import Store


@pytest.mark.parametrize("count", [0, 1, 3, VARIABLES // 2 - 1, VARIABLES // 2, VARIABLES + 1])
def test_any_number_of_rows_is_inserted_whole_and_in_order(tmp_path: Path, count: int) -> None:
    database = Database(tmp_path / "index")
    rows = [(f"term {number:05}", number) for number in range(count)]
    with database.transaction():
        database.insert("names", rows)
    assert database.rows("SELECT term, file FROM names ORDER BY term") == rows


def test_a_file_that_is_put_again_has_one_record_and_the_names_of_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "index")
    files = [File(Path("/", f"river {number}.txt"), 1, 1, number + 1) for number in range(1200)]
    for document in (5000, 6000):
        with store.db.transaction():
            store.put_files([*files[:700], files[0]._replace(path=Path("/lake.txt"), document=document)])
            store.put_files(files[700:])
    assert [file.document for file in store.files() if file.path.name == "lake.txt"] == [6000]
    assert len(store.files()) == 1201
    assert store.named("river") == set(range(1, 1201))
    assert store.named("lake") == {6000}
    with store.db.transaction():
        store.remove([file.path for file in files[1:]] + [Path("/absent.txt")])
    assert len(store.files()) == 2
    assert store.db.rows("SELECT count(DISTINCT file) FROM names") == [(2,)]
