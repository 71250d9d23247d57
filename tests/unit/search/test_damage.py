"""Damage: the check finds it in all that a search may show, and it is never more than an error of ours."""

import random
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest

from longspan.errors import CheckpointError, LongspanError
from longspan.search.database import TABLES, Value
from longspan.search.faults import damaged
from longspan.search.index import Index
from longspan.search.store import Store
from longspan.search.verify import verify
from unit.search.folders import stored, tiny, written


class Undone(Exception):
    """Takes a change back."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an index that no test changes."""
    folder = tmp_path_factory.mktemp("whole")
    content = "# The river\n\nIt flows to the sea.\n\n## Fish\n\nSalmon and trout live in the river.\n"
    docs = written(
        folder / "docs", {"story.md": content, "other.txt": "Nothing of the kind.", "void.txt": ""}
    )
    with Index.open(folder / "index", tiny()) as index:
        index.add(docs)
        index.add(written(folder / "unread", {"new.txt": "The model has not read this."}), vectors=False)
    return folder / "index"


def copied(whole: Path, folder: Path) -> Path:
    folder.mkdir()
    for path in whole.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.mark.parametrize("table", ["meta", *TABLES])
def test_the_check_finds_a_change_of_any_value(whole: Path, tmp_path: Path, table: str) -> None:
    store = Store(copied(whole, tmp_path / "index"))
    verify(store)
    columns = [name for _, name, *_ in store.db.rows(f"PRAGMA table_info({table})")]
    (key, *_) = [name for _, name, *_, is_key in store.db.rows(f"PRAGMA table_info({table})") if is_key]
    missed = []
    for row in store.db.rows(f"SELECT * FROM {table}"):
        keys = " AND ".join(f"{name} IS ?" for name in columns)
        for column, value in zip(columns, row, strict=True):
            change = f"UPDATE {table} SET {column} = ? WHERE {keys}"
            if not finds(store, change, changed(value), *row):
                missed.append((column, row))
        if not finds(store, f"DELETE FROM {table} WHERE {keys}", *row):
            missed.append((key, row))
    assert not missed


def changed(value: Value) -> Value:
    """Another value of the same type."""
    if value is None:
        return 0
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:] if value else b"\1\0\0\0"
    return f"{value}x" if isinstance(value, str) else value + 1


def finds(store: Store, statement: str, *values: Value) -> bool:
    """Whether the check finds a change, which is then taken back."""
    found = False
    with suppress(Undone), store.db.transaction():
        with suppress(sqlite3.IntegrityError):  # a key that is taken: SQLite refuses it itself
            assert store.db.do(statement, *values).rowcount == 1
            try:
                verify(store)
            except CheckpointError:
                found = True
            raise Undone
        found = True
    return found


def test_the_check_finds_words_that_were_exchanged(whole: Path, tmp_path: Path) -> None:
    """Two words of two passages: how many words there are does not tell."""
    store = Store(copied(whole, tmp_path / "index"))
    with store.db.transaction():
        data = dict(store.db.rows("SELECT term, data FROM postings WHERE term IN ('salmon', 'noth')"))
        assert store.db.do("UPDATE postings SET data = ? WHERE term = 'noth'", data["salmon"]).rowcount == 1
        assert store.db.do("UPDATE postings SET data = ? WHERE term = 'salmon'", data["noth"]).rowcount == 1
        with pytest.raises(CheckpointError, match="its table of words is not whole"):
            verify(store)


def test_the_check_is_an_error_that_says_how_to_rebuild(whole: Path, tmp_path: Path) -> None:
    store = Store(copied(whole, tmp_path / "index"))
    with store.db.transaction():
        store.db.do("UPDATE passages SET line = line + 1")
    store.db.close()
    with pytest.raises(CheckpointError, match=r"is damaged: .* --rebuild"), Index.open(store.folder) as index:
        index.verify()


@pytest.mark.parametrize("name", ["vectors-0.bin", "tokens-0.bin"])
def test_a_flipped_bit_of_a_flat_file_is_found_by_its_checksum(
    whole: Path, tmp_path: Path, name: str
) -> None:
    folder = copied(whole, tmp_path / "index")
    data = bytearray((folder / name).read_bytes())
    for place in (0, len(data) // 2, len(data) - 1):
        data[place] ^= 1
        (folder / name).write_bytes(data)
        with pytest.raises(CheckpointError, match="has changed"), Index.open(folder) as index:
            index.verify()
        data[place] ^= 1


def test_a_flipped_byte_of_the_database_is_never_more_than_an_error_of_ours(tmp_path: Path) -> None:
    folder, draw = tmp_path / "index", random.Random(2)
    store = Store(folder)
    for number in range(6):
        stored(store, f"n{number}", [f"river {number} {i} " + "é" * i for i in range(30)], width=8)
    store.db.close()
    path = folder / "index.sqlite"
    whole = path.read_bytes()
    used = len(whole.rstrip(b"\0"))
    errors = []
    for _ in range(120):
        data = bytearray(whole)
        data[draw.randrange(used)] ^= 1 << draw.randrange(8)
        path.write_bytes(data)
        try:
            with Index.open(folder) as index:
                index.search("river 3", mode="bm25")
                index.search("river 3", by="document", mode="bm25")
                index.verify()
        except LongspanError as error:
            errors.append(str(error))
    assert len(errors) > 10, "many bytes of a small database are in use"
    assert all("ebuild" in words or "cannot be used" in words for words in errors)


def test_an_index_of_another_schema_is_refused(whole: Path, tmp_path: Path) -> None:
    store = Store(copied(whole, tmp_path / "index"))
    with store.db.transaction():
        store.db.put(schema="4")
    store.db.close()
    with pytest.raises(LongspanError, match=r"`index` must be of schema 5, but is '4'\. Rebuild"):
        Index.open(store.folder)


def test_the_error_says_how_to_rebuild(tmp_path: Path) -> None:
    repair = f"Rebuild it: longspan index --index {tmp_path} --rebuild"
    assert str(damaged(tmp_path, "why")) == f"The index `{tmp_path}` is damaged: why. {repair}"
