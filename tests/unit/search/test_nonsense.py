"""Values that make no sense, as a bug would leave them in an index: every step says that it is damage."""

from collections.abc import Callable
from pathlib import Path

import pytest

from longspan.errors import CheckpointError
from longspan.search import compaction
from longspan.search.index import Index
from longspan.search.store import Store
from unit.search.folders import filled, tiny

FAR = -(2**63) + 257
NONSENSE = {
    "a path with a NUL": "UPDATE files SET path = CAST('/a' || x'00' || id AS BLOB)",
    "rows beyond 64 bits": "UPDATE documents SET slot = 9223372036854775807",
    "a posting of a row that is not there": f"UPDATE postings SET slot = {FAR}",
    "folders that are no JSON": "UPDATE meta SET value = '[\"a' || x'01' WHERE key = 'roots'",
    "a count of rows without end": "UPDATE meta SET value = '999999999999999999999' WHERE key = 'rows'",
    "a count of tokens without end": "UPDATE meta SET value = '999999999999999999999' WHERE key = 'tokens'",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    with Index.open(folder / "index", tiny()) as index:
        index.add(filled(folder / "docs", 2), progress=False)
    return folder


@pytest.mark.parametrize("what", NONSENSE)
def test_every_step_tells_nonsense_as_damage(
    what: str, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "PARTS", 0)  # each run joins postings
    (tmp_path / "index").mkdir()
    for path in (whole / "index").iterdir():
        (tmp_path / "index" / path.name).write_bytes(path.read_bytes())
    store = Store(tmp_path / "index")
    with store.db.transaction():
        assert store.db.do(NONSENSE[what]).rowcount > 0
    store.db.close()
    steps: list[Callable[[Index], object]] = [
        lambda index: index.search("river"),
        lambda index: index.verify(),
        lambda index: index.add(filled(tmp_path / "new", 3), progress=False),
        lambda index: index.remove(whole / "docs" / "0.txt"),
        lambda index: index.prune(),
    ]
    told = []
    for step in steps:
        with Index.open(tmp_path / "index", tiny()) as index:
            try:
                step(index)
            except CheckpointError as error:
                told.append(str(error))
    assert told
    assert all("is damaged: " in words for words in told)
