"""A view of an index believes no count that would fill the memory."""

from pathlib import Path

import pytest

from longspan.errors import CheckpointError
from longspan.search.index import Index
from longspan.search.store import Store
from machine import using_at_most
from unit.search.folders import filled, tiny


@pytest.mark.parametrize("ends", ["00000003", "ffffffff"])
def test_a_wrong_count_of_tokens_takes_no_memory(tmp_path: Path, ends: str) -> None:
    with Index.open(tmp_path / "index", tiny()) as index:
        index.add(filled(tmp_path / "docs", 1))
    store = Store(tmp_path / "index")
    with store.db.transaction():
        store.db.do(f"UPDATE documents SET token_ends = CAST(x'{ends}' || substr(token_ends, 5) AS BLOB)")
    store.db.close()
    index = Index.open(store.folder, tiny())
    with index, using_at_most(16 << 20), pytest.raises(CheckpointError, match="tokens are missing"):
        index.search("river", mode="hybrid")
