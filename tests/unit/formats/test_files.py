"""Which files make a checkpoint, and how names become folders."""

from pathlib import Path
from typing import Any

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from longspan.errors import CheckpointError, InputError
from longspan.formats.files import _known, inside, read_json, resolve, wanted

REPOSITORY = [
    *("README.md", "config.json", "modeling.py", "tokenizer.json", "vocab.txt", "spiece.model"),
    *("model.safetensors", "pytorch_model.bin", "tf_model.h5", "model.fp16.safetensors", "training_args.bin"),
    *("1_Pooling/config.json", "1_Pooling/pooling.py", "2_Dense/model.safetensors", "modules.json"),
]


class Hub:
    """A hub without a network: it notes what is asked of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: list[str] = REPOSITORY
        self.failure: Exception | None = None
        self.asked: dict[str, Any] = {}

    def __call__(self, *, token: object) -> "Hub":
        return self

    def list_repo_files(self, name: str, *, revision: str | None) -> list[str]:
        if self.failure:
            raise self.failure
        return self.files

    def snapshot_download(self, name: str, **asked: Any) -> str:
        self.asked = asked
        if asked["local_files_only"] and not any(self.folder.iterdir()):
            raise LocalEntryNotFoundError("nothing here")
        return str(self.folder)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    folder = tmp_path / "cache"
    folder.mkdir()
    found = Hub(folder)
    monkeypatch.setattr("huggingface_hub.HfApi", found)
    monkeypatch.setattr("huggingface_hub.snapshot_download", found.snapshot_download)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("longspan.formats.files._known", lambda address: True)
    return found


def test_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    assert resolve(tmp_path) == tmp_path
    assert resolve(str(tmp_path)) == tmp_path


def test_of_a_model_on_the_hub_only_data_are_downloaded(hub: Hub) -> None:
    assert resolve("org/name", revision="main") == hub.folder
    kept = hub.asked["allow_patterns"]
    assert kept == wanted(REPOSITORY)
    assert "1_Pooling/config.json" in kept
    assert "2_Dense/model.safetensors" in kept
    assert not [name for name in kept if name.endswith((".py", ".bin", ".h5", ".md"))]


def test_pickles_are_downloaded_only_for_want_of_safetensors() -> None:
    shards = ["pytorch_model-00001-of-00001.bin", "pytorch_model.bin.index.json"]
    assert wanted(shards) == shards
    assert wanted([*shards, "model.safetensors.index.json"]) == ["model.safetensors.index.json"]


def test_without_a_network_the_cache_serves(hub: Hub) -> None:
    hub.failure = ConnectionError("no route")
    (hub.folder / "config.json").write_text("{}")
    assert resolve("name") == hub.folder
    assert hub.asked["local_files_only"]


def test_what_is_neither_reachable_nor_in_the_cache_is_said_to_be_so(hub: Hub) -> None:
    hub.failure = ConnectionError("no route")
    with pytest.raises(InputError, match=r"not in the cache, and the hub cannot be reached.*'org/name at v"):
        resolve("org/name", revision="v1")
    with pytest.raises(InputError, match=r"\(it is not in the cache\)"):
        resolve("org/name", local_files_only=True)


def test_offline_the_hub_is_not_asked(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    hub.failure = AssertionError("asked")
    (hub.folder / "config.json").write_text("{}")
    resolve("org/name")
    assert hub.asked["local_files_only"]


def test_a_real_cache_is_found_without_a_network(tmp_path: Path) -> None:
    snapshot = cached(tmp_path)
    assert resolve("org/name", cache_dir=tmp_path, local_files_only=True) == snapshot
    assert read_json(inside(snapshot, "config.json")) == {"a": 1}


def cached(cache: Path, blob: str = "models--org--name/blobs/b10b") -> Path:
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
    pooling = cached(tmp_path) / "1_Pooling"
    pooling.mkdir()
    (pooling / "config.json").symlink_to("../../../blobs/b10b")
    assert read_json(inside(pooling, "config.json")) == {"a": 1}


def test_a_blob_may_lie_in_the_store_that_repositories_share(tmp_path: Path) -> None:
    assert read_json(inside(cached(tmp_path, "blobs/b1/b10b"), "config.json")) == {"a": 1}


NO_NAMES = ["a/b/c", "../x", "/absent", "a b", "", "~nobody/x", "a\0b", "org//", "org/", "-x", "a..b", "a--b"]


@pytest.mark.parametrize("name", [*NO_NAMES, "https://host/x", "C:\\x"])
def test_a_name_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="`folder_or_name` must be an existing folder or the name"):
        resolve(name)


@pytest.mark.parametrize("revision", ["../x", "/x", "a b", "", "-x"])
def test_a_revision_that_is_no_revision_is_refused(revision: str) -> None:
    with pytest.raises(InputError, match="`revision` must be a branch, a tag or a commit"):
        resolve("org/name", revision=revision)


@pytest.mark.parametrize("value", [True, 1, "yes", None])
def test_code_of_a_checkpoint_is_never_trusted(value: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`trust_remote_code` must be False"):
        resolve(tmp_path, trust_remote_code=value)


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


def test_a_hub_that_cannot_be_looked_up_is_not_asked(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.failure = AssertionError("the hub was asked")
    monkeypatch.setattr("longspan.formats.files._known", lambda address: False)
    with pytest.raises(InputError, match="the hub cannot be reached"):
        resolve("someone/something")
    monkeypatch.undo()
    monkeypatch.setattr("longspan.formats.files.getproxies", dict)
    assert not _known("https://hub.invalid")


def test_checkpoints_of_tensorflow_are_downloaded_only_of_etc_and_for_want_of_others() -> None:
    theirs = ["model.ckpt.data-00000-of-00001", "model.ckpt.index"]
    found = [*theirs, "model.ckpt.meta", "checkpoint", "vocab_bert_uncased_english.txt"]
    assert wanted(found) == ["vocab_bert_uncased_english.txt"]
    data = ["etc_config.json", "vocab_bert_uncased_english.txt"]
    assert wanted([*found, "etc_config.json"]) == [*data, *theirs]
    assert wanted([*found, "etc_config.json", "model.safetensors"]) == [*data, "model.safetensors"]
