"""Damage: the check finds it in all that a search may show, and it is never more than an error of ours."""

import random
from pathlib import Path

import pytest

from longspan.errors import CheckpointError, LongspanError
from longspan.search.compaction import verify
from longspan.search.database import damaged
from longspan.search.index import Index
from longspan.search.store import Store
from unit.search.folders import stored, tiny, written

HARM = {
    "title": "UPDATE documents SET title = 'other'",
    "kind": "UPDATE documents SET kind = 'pdf'",
    "digest": "UPDATE documents SET digest = digest || x'00'",
    "page": "UPDATE documents SET pages = x'00000000'",
    "length": "UPDATE documents SET lengths = zeroblob(length(lengths))",
    "count of tokens": "UPDATE documents SET token_ends = zeroblob(length(token_ends))",
    "place of tokens": "UPDATE documents SET token_slot = token_slot + 1",
    "text": "UPDATE passages SET text = replace(text, 'river', 'ocean')",
    "section": "UPDATE passages SET section = 'elsewhere'",
    "line": "UPDATE passages SET line = line + 1",
    "start": "UPDATE passages SET start = start + 1",
    "lost passage": "DELETE FROM passages WHERE id = (SELECT max(id) FROM passages)",
    "lost word": "DELETE FROM postings WHERE term = 'river'",
    "moved word": "UPDATE postings SET slot = slot + 1 WHERE term = 'river'",
    "path": "UPDATE files SET path = replace(path, 'story', 'stork')",
    "time": "UPDATE files SET mtime = mtime + 1",
    "document of a file": "UPDATE files SET document = 99",
    "name": "DELETE FROM names WHERE term = 'stori'",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an index that no test changes."""
    folder = tmp_path_factory.mktemp("whole")
    content = "# The river\n\nIt flows to the sea.\n\n## Fish\n\nSalmon and trout live in the river.\n"
    docs = written(folder / "docs", {"story.md": content, "other.txt": "Nothing of the kind."})
    with Index.open(folder / "index", tiny()) as index:
        index.add(docs)
    return folder / "index"


def copied(whole: Path, folder: Path) -> Path:
    folder.mkdir()
    for path in whole.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.mark.parametrize("harm", HARM)
def test_the_check_finds_changes_of_all_that_is_shown_or_searched(
    whole: Path, tmp_path: Path, harm: str
) -> None:
    store = Store(copied(whole, tmp_path / "index"))
    verify(store)
    with store.db.transaction():
        assert store.db.do(HARM[harm]).rowcount > 0
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
        store.db.put(schema="3")
    store.db.close()
    with pytest.raises(LongspanError, match=r"`index` must be of schema 4, but is '3'\. Rebuild"):
        Index.open(store.folder)


def test_the_error_says_how_to_rebuild(tmp_path: Path) -> None:
    repair = f"Rebuild it: longspan index PATH... --index {tmp_path} --rebuild"
    assert str(damaged(tmp_path, "why")) == f"The index `{tmp_path}` is damaged: why. {repair}"
