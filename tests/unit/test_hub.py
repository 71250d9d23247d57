"""One way from names to folders, and which files of a repository are downloaded."""

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError

from longspan.errors import InputError
from longspan.hub import BUILTIN, _has_address, builtin_folder, cache_folder, data_files, resolve
from unit.formats.test_files import snapshot_of

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


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Longspan keeps its models; two are there."""
    monkeypatch.setenv("LONGSPAN_CACHE", str(tmp_path / "longspan"))
    for name in ("my-model", ".new-left-by-a-kill"):
        (tmp_path / "longspan" / "models" / name).mkdir(parents=True)
    return tmp_path / "longspan" / "models"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    folder = tmp_path / "cache"
    folder.mkdir()
    hub = Hub(folder)
    monkeypatch.setattr("huggingface_hub.HfApi", hub)
    monkeypatch.setattr("huggingface_hub.snapshot_download", hub.snapshot_download)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("longspan.hub._has_address", lambda address: True)
    return hub


def test_a_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    assert resolve(tmp_path) == tmp_path
    assert resolve(str(tmp_path)) == tmp_path


def test_of_a_model_on_the_hub_only_data_are_downloaded(hub: Hub) -> None:
    assert resolve("org/name", revision="main") == hub.folder
    kept = hub.asked["allow_patterns"]
    assert kept == data_files(REPOSITORY)
    assert "1_Pooling/config.json" in kept
    assert "2_Dense/model.safetensors" in kept
    assert not [name for name in kept if name.endswith((".py", ".bin", ".h5", ".md"))]


def test_pickles_are_downloaded_only_for_want_of_safetensors() -> None:
    beside = ["colbert_linear.pt", "config.json", "sparse_linear.pt"]
    assert data_files([*beside, "long.pt", "model.safetensors"]) == [*beside, "model.safetensors"]
    shards = ["pytorch_model-00001-of-00001.bin", "pytorch_model.bin.index.json"]
    assert data_files(shards) == shards
    assert data_files([*shards, "model.safetensors.index.json"]) == ["model.safetensors.index.json"]


def test_without_a_network_the_cache_serves(hub: Hub) -> None:
    hub.failure = ConnectionError("no route")
    (hub.folder / "config.json").write_text("{}")
    assert resolve("name") == hub.folder
    assert hub.asked["local_files_only"]


def test_what_is_neither_reachable_nor_in_the_cache_is_said_to_be_so(hub: Hub) -> None:
    hub.failure = ConnectionError("no route")
    with pytest.raises(
        InputError, match=r"but is 'org/name at v1'.*not in the cache, and the hub cannot be reached"
    ):
        resolve("org/name", revision="v1")
    with pytest.raises(InputError, match=r"There is no such folder, and it is not in the cache\.$"):
        resolve("org/name", local_files_only=True)


def test_offline_the_hub_is_not_asked(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    hub.failure = AssertionError("asked")
    (hub.folder / "config.json").write_text("{}")
    resolve("org/name")
    assert hub.asked["local_files_only"]


def test_a_real_cache_is_found_without_a_network(tmp_path: Path) -> None:
    snapshot = snapshot_of(tmp_path)
    assert resolve("org/name", cache_dir=tmp_path, local_files_only=True) == snapshot


NO_NAMES = ["a/b/c", "a b", "", "a\0b", "x" * 5000, "org//", "org/", "-x", "a..b", "a--b"]


@pytest.mark.parametrize("name", [*NO_NAMES, "https://host/x", "C:\\x"])
def test_a_name_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r'`model` must be a folder, "default", a name that .* but is'):
        resolve(name)


@pytest.mark.parametrize(
    "name", ["../x", "/absent", "~nobody/x", "./my-model", Path("my-model"), Path("a/b")]
)
def test_a_path_is_only_a_folder_never_a_name(
    name: str | Path, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="`model` must be a folder that exists, but is '"):
        resolve(name)
    assert not hub.asked


@pytest.mark.parametrize("revision", ["../x", "/x", "a b", "", "-x"])
def test_a_revision_that_is_no_revision_is_refused(revision: str) -> None:
    with pytest.raises(InputError, match="`revision` must be a branch, a tag or a commit"):
        resolve("org/name", revision=revision)


@pytest.mark.parametrize("value", [True, 1, "yes", None])
def test_code_of_a_checkpoint_is_never_trusted(value: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`trust_remote_code` must be False"):
        resolve(tmp_path, trust_remote_code=value)


def test_a_hub_that_cannot_be_looked_up_is_not_asked(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.failure = AssertionError("the hub was asked")
    monkeypatch.setattr("longspan.hub._has_address", lambda address: False)
    with pytest.raises(InputError, match="the hub cannot be reached"):
        resolve("someone/something")
    monkeypatch.undo()
    monkeypatch.setattr("urllib.request.getproxies", dict)
    assert not _has_address("https://hub.invalid")


def test_checkpoints_of_tensorflow_are_downloaded_only_of_etc_and_for_want_of_others() -> None:
    theirs = ["model.ckpt.data-00000-of-00001", "model.ckpt.index"]
    found = [*theirs, "model.ckpt.meta", "checkpoint", "vocab_bert_uncased_english.txt"]
    assert data_files(found) == ["vocab_bert_uncased_english.txt"]
    data = ["etc_config.json", "vocab_bert_uncased_english.txt"]
    assert data_files([*found, "etc_config.json"]) == [*data, *theirs]
    assert data_files([*found, "etc_config.json", "model.safetensors"]) == [*data, "model.safetensors"]


def test_a_model_in_the_cache_is_known_by_its_name(models: Path) -> None:
    assert resolve("my-model") == models / "my-model"


def test_a_folder_comes_before_the_cache_and_the_cache_before_the_hub(
    hub: Hub, models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve("my-model") == models / "my-model"
    (tmp_path / "my-model").mkdir()
    assert resolve("my-model") == tmp_path / "my-model"
    assert not hub.asked


def test_what_a_killed_process_left_behind_is_no_model() -> None:
    with pytest.raises(InputError, match="`model` must be"):
        resolve(".new-left-by-a-kill")


def test_default_is_the_built_in_model(models: Path) -> None:
    with pytest.raises(InputError, match=r"`model` must be in the cache, but is 'default'. .*longspan pull"):
        resolve("default")
    (models / BUILTIN).mkdir()
    assert resolve("default") == builtin_folder() == models / BUILTIN


def test_a_folder_called_default_is_not_taken_for_the_built_in_model(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "default").mkdir()
    (models / BUILTIN).mkdir()
    assert resolve("default") == models / BUILTIN
    assert resolve("./default") == resolve(Path("default")) == tmp_path / "default"


def test_a_folder_is_resolved_once_and_absolutely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSPAN_CACHE", "cache")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cache" / "models" / "kept").mkdir(parents=True)
    (tmp_path / "here").mkdir()
    found = [resolve("here"), resolve("./here"), resolve("kept"), resolve("here/../here")]
    monkeypatch.chdir("/")
    assert found == [tmp_path / "here"] * 2 + [tmp_path / "cache/models/kept", tmp_path / "here"]


def test_a_folder_that_is_called_as_the_built_in_model_is_not_the_default(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / BUILTIN).mkdir()
    (models / BUILTIN).mkdir()
    assert resolve("default") == models / BUILTIN


@pytest.mark.parametrize(("typo", "meant"), [("defualt", "default"), ("my-modle", "my-model")])
def test_a_typo_is_told_what_may_have_been_meant(typo: str, meant: str, hub: Hub) -> None:
    with pytest.raises(
        InputError, match=f"but is '{typo}'. There is no such folder, .* Did you mean {meant}?"
    ):
        resolve(typo, local_files_only=True)


def test_a_model_that_the_hub_does_not_have_is_said_to_be_so(hub: Hub) -> None:
    hub.failure = RepositoryNotFoundError("404", response=MagicMock())
    with pytest.raises(
        InputError, match=r"but is 'org/name'. .* and the hub has no such model, or not for you"
    ):
        resolve("org/name")


def test_a_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(InputError, match=r"`model` must be a folder, .*Give the folder that the file is in."):
        resolve(tmp_path / "model.safetensors")


def test_a_number_is_no_model() -> None:
    with pytest.raises(InputError, match=r"`model` must be a folder, .* but is 7"):
        resolve(7)  # type: ignore[arg-type]


def test_the_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == tmp_path / "longspan"
    monkeypatch.delenv("LONGSPAN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_folder() == Path("/x/longspan")
