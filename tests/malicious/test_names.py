"""No shard is opened outside of the folder, whatever the index calls it and wherever links lead."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from longspan.formats.files import read_json
from longspan.formats.weights import open_weights
from malicious.containers import in_zip
from malicious.headers import GOOD
from malicious.pickles import well_formed

Judge = Callable[[Callable[[], object]], str]
UP = [
    "../x",
    "../../x",
    "a/../../x",
    "./x",
    "a/x",
    "/x",
    "//x",
    "~/x",
    "..\\x",
    "a\\x",
    "\\x",
    "%2e%2e%2fx",
    "．．／x",
]
FAR = [
    "C:\\x",
    "C:/x",
    "C:x",
    "\\\\host\\share\\x",
    "//host/share/x",
    "\\\\?\\C:\\x",
    "file:///x",
    "https://host/x",
]
ODD = ["x\0", "\nx", " x", "", ".", "..", ".hidden", "-x", "*", "x\u202e", "x" * 300, "absent", "folder"]
DEVICES = ["CON", "nul", "aux.x", "COM1", "lpt9", "PRN"]
NAMES = [f"{name}.safetensors" for name in [*UP, *FAR, *ODD, *DEVICES]] + [
    *(
        "",
        ".",
        "..",
        "...",
        "$HOME",
        "/etc/passwd",
        "/dev/zero",
        "/proc/self/mem",
        "nul",
        "folder.safetensors/x",
    ),
    *("x.safetensors:stream", "x.safetensors\0", "x.safetensors\n", "x.safetensors ", "x.safetensors."),
    *("x.bin", "x.py", "x.pkl", "x.safetensors.py", "x.SAFETENSORS", "xsafetensors"),
]
GOALS = ["outside", "outside/../outside", "/etc/passwd", "/dev/zero", "absent", "itself"]


@pytest.mark.parametrize("name", NAMES)
def test_a_shard_lies_in_its_folder_and_is_called_plainly(name: str, tmp_path: Path, refused: Judge) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "folder.safetensors").mkdir()
    for place in (tmp_path / "x.safetensors", inner / "x.bin", inner / "x.py"):
        place.write_bytes(GOOD)
    (inner / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    refused(lambda: open_weights(inner))


@pytest.mark.parametrize("name", ["../x.bin", "/x.bin", "x.safetensors", "x.py", "C:\\x.bin", "nul.bin"])
def test_neither_is_one_of_torch_files(name: str, tmp_path: Path, refused: Judge) -> None:
    (tmp_path / "x.safetensors").write_bytes(GOOD)
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": {"weight": name}}))
    refused(lambda: open_weights(tmp_path))


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize(
    "goal", ["outside", "outside/../outside", "/etc/passwd", "/dev/zero", "absent", "itself"]
)
def test_a_link_out_of_the_folder_is_not_followed(
    name: str, goal: str, tmp_path: Path, refused: Judge
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "outside").write_bytes(GOOD if name == "model.safetensors" else in_zip(well_formed()))
    (inner / name).symlink_to(inner / name if goal == "itself" else inner / ".." / goal)
    refused(lambda: open_weights(inner))


def test_a_link_from_the_cache_of_the_hub_leads_to_its_blobs_only(tmp_path: Path, refused: Judge) -> None:
    snapshot = tmp_path / "models--a--b" / "snapshots" / "0123"
    snapshot.mkdir(parents=True)
    (tmp_path / "models--a--b" / "secret").write_bytes(GOOD)
    (snapshot / "model.safetensors").symlink_to("../../secret")
    refused(lambda: open_weights(snapshot))


@pytest.mark.parametrize("name", ["model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"])
def test_a_pipe_is_not_waited_for(name: str, tmp_path: Path, refused: Judge) -> None:
    os.mkfifo(tmp_path / name)
    refused(lambda: open_weights(tmp_path))
    refused(lambda: read_json(tmp_path / name))


@pytest.mark.parametrize(
    "index",
    [
        {},
        {"weight_map": None},
        {"weight_map": []},
        {"weight_map": {"a": 1}},
        {"weight_map": {"a": ["one.safetensors"]}},
        {"weight_map": {"b": "one.safetensors"}},
        {"weight_map": {"a": "one.safetensors", "b": "one.safetensors"}},
        {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}},
    ],
)
def test_an_index_and_its_shards_name_the_same_tensors(index: object, tmp_path: Path, refused: Judge) -> None:
    for shard in ("one", "two"):
        (tmp_path / f"{shard}.safetensors").write_bytes(GOOD)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(lambda: open_weights(tmp_path))
