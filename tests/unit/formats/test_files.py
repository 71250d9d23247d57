"""Files are read from their folder only, and JSON only as it was meant."""

from pathlib import Path

import pytest

from longspan.errors import CheckpointError
from longspan.formats.files import inside, read_json


def snapshot_of(cache: Path, blob: str = "models--org--name/blobs/b10b") -> Path:
    """A snapshot as the hub's library keeps it: its one file is a link to a blob."""
    commit = "0123456789" * 4
    repository = cache / "models--org--name"
    snapshot = repository / "snapshots" / commit
    for folder in (snapshot, repository / "refs", (cache / blob).parent):
        folder.mkdir(parents=True, exist_ok=True)
    (repository / "refs" / "main").write_text(commit)
    (cache / blob).write_text('{"a": 1}')
    (snapshot / "config.json").symlink_to(f"../../../{blob}")
    return snapshot


def test_a_folder_in_a_snapshot_has_its_blobs_too(tmp_path: Path) -> None:
    pooling = snapshot_of(tmp_path) / "1_Pooling"
    pooling.mkdir()
    (pooling / "config.json").symlink_to("../../../blobs/b10b")
    assert read_json(inside(pooling, "config.json")) == {"a": 1}


def test_a_blob_may_lie_in_the_store_that_repositories_share(tmp_path: Path) -> None:
    assert read_json(inside(snapshot_of(tmp_path, "blobs/b1/b10b"), "config.json")) == {"a": 1}


def test_json_is_read_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"a": [1, 2.5, -3e-5, null, true, "é"], "b": {"c": {}}}')
    assert read_json(path) == {"a": [1, 2.5, -3e-5, None, True, "é"], "b": {"c": {}}}


def test_json_that_is_absent_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"config.json` is refused: it does not exist"):
        read_json(tmp_path / "config.json")


def test_a_link_inside_the_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "config.json").symlink_to("real.json")
    assert read_json(inside(tmp_path, "config.json")) == {}
