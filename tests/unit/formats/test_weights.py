"""What is saved is loaded again, bit by bit, without copies."""

import json
import os
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from longspan.errors import CheckpointError, InputError
from longspan.formats import torch_save
from longspan.formats import weights as module
from longspan.formats.weights import open_weights, save_weights

DTYPES = [
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16),
]
SHARD = "model-00001-of-00002.safetensors"


def some_tensors() -> dict[str, Tensor]:
    """Tensors of all types, odd shapes, and views."""
    found = {
        str(dtype): torch.arange(35).view(5, 7).to(dtype) for dtype in [*DTYPES, torch.int8, torch.uint8]
    }
    base = torch.randn(11, 13, generator=torch.Generator().manual_seed(0))
    views = {"transposed": base.t().clone().t(), "row": torch.arange(9.0)[3:5], "number": torch.tensor(3.5)}
    return {**found, "flags": torch.tensor([True, False]), "nothing": torch.empty(0, 3), **views}


def assert_same(found: module.Weights, wanted: dict[str, Any]) -> None:
    assert found.keys() == wanted.keys()
    for name, tensor in wanted.items():
        assert found.shapes[name] == (tuple(tensor.shape), tensor.dtype)
        assert torch.equal(found[name], tensor)
        assert found[name].dtype == tensor.dtype
        assert not found[name].requires_grad


@pytest.mark.parametrize("shard_bytes", [10**9, 300, 1])
def test_what_is_saved_is_loaded(shard_bytes: int, tmp_path: Path) -> None:
    tensors = some_tensors()
    save_weights(tmp_path / "new", tensors, shard_bytes=shard_bytes)
    assert_same(open_weights(tmp_path / "new"), tensors)
    assert (tmp_path / "new" / "model.safetensors").exists() == (shard_bytes == 10**9)
    assert not [path for path in (tmp_path / "new").iterdir() if path.name.startswith(".")]


def test_transformers_finds_the_index_it_expects(tmp_path: Path) -> None:
    save_weights(tmp_path, {"a": torch.zeros(3), "b": torch.ones(4)}, shard_bytes=16)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    other = SHARD.replace("00001-of", "00002-of")
    assert index == {"metadata": {"total_size": 28}, "weight_map": {"a": SHARD, "b": other}}


@pytest.mark.parametrize("new_format", [True, False], ids=["zip", "legacy"])
@pytest.mark.parametrize("wrapped", [True, False])
def test_what_torch_saved_is_loaded(new_format: bool, wrapped: bool, tmp_path: Path) -> None:
    tensors: dict[str, Any] = OrderedDict(some_tensors())
    tensors["tied"] = tensors["transposed"]
    tensors["parameter"] = torch.nn.Parameter(torch.randn(3))
    training = {"epoch": 3, "rates": [0.1, (None, True)], "optimizer": {0: {"step": torch.tensor(7)}}}
    saved = {"state_dict": tensors, **training} if wrapped else tensors
    torch.save(saved, tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=new_format)
    found = open_weights(tmp_path)
    assert_same(found, {name: tensor.detach() for name, tensor in tensors.items()})
    assert found["tied"].data_ptr() == found["transposed"].data_ptr()


def test_a_module_saved_by_torch_is_loaded_with_its_metadata(tmp_path: Path) -> None:
    module = torch.nn.Linear(3, 2)
    torch.save(module.state_dict(), tmp_path / "pytorch_model.bin")
    assert_same(open_weights(tmp_path), {name: tensor.detach() for name, tensor in module.named_parameters()})


def test_shards_of_torch_files_are_loaded(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(3)}, tmp_path / "one.bin")
    torch.save({"b": torch.ones(3)}, tmp_path / "two.bin")
    index = {"metadata": {}, "weight_map": {"a": "one.bin", "b": "two.bin"}}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    assert_same(open_weights(tmp_path), {"a": torch.zeros(3), "b": torch.ones(3)})


def test_safetensors_come_before_pickles(tmp_path: Path) -> None:
    torch.save({"a": torch.zeros(3)}, tmp_path / "pytorch_model.bin")
    save_weights(tmp_path, {"b": torch.zeros(3)})
    assert list(open_weights(tmp_path)) == ["b"]


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_weights_are_views_of_the_file_and_writing_to_them_does_not_change_it(
    name: str, tmp_path: Path
) -> None:
    tensors = {"a": torch.zeros(1 << 16)}
    save_weights(tmp_path, tensors) if name == "model.safetensors" else torch.save(tensors, tmp_path / name)
    before = (tmp_path / name).read_bytes()
    tensor = open_weights(tmp_path)["a"]
    maps = [line.split() for line in Path("/proc/self/maps").read_text().splitlines() if name in line]
    spans = [[int(end, 16) for end in line[0].split("-")] for line in maps]
    assert any(begin <= tensor.data_ptr() < end for begin, end in spans)
    tensor += 1
    assert (tmp_path / name).read_bytes() == before


def test_a_folder_without_weights_is_told_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"it holds no weights. It needs one of: model.safetensors, "):
        open_weights(tmp_path)


def test_an_older_torch_does_not_read_pickles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save({"a": torch.zeros(3)}, tmp_path / "pytorch_model.bin")
    monkeypatch.setattr(torch_save, "OLDEST_TORCH", "99.0")
    with pytest.raises(CheckpointError, match=r"cannot read it safely. Install torch 99.0 or newer."):
        open_weights(tmp_path)


def test_a_name_that_is_absent_is_a_key_error(tmp_path: Path) -> None:
    save_weights(tmp_path, {"a": torch.zeros(3)})
    weights = open_weights(tmp_path)
    assert repr(weights) == "Weights(1 tensors, 12 bytes)"
    with pytest.raises(KeyError):
        weights["b"]


@pytest.mark.parametrize("one", [slice(None), slice(0, 3), slice(2, None)])
def test_tensors_that_share_memory_are_not_saved(one: slice, tmp_path: Path) -> None:
    base = torch.zeros(5, 2)
    with pytest.raises(InputError, match=r"`tensors` must not share memory, but '.' and '.' do"):
        save_weights(tmp_path, {"a": base, "b": base[one]})
    assert not list(tmp_path.iterdir())


def test_rows_side_by_side_in_one_memory_are_saved(tmp_path: Path) -> None:
    base = torch.arange(12.0).view(6, 2)
    save_weights(tmp_path, {"q": base[:2], "k": base[2:4], "v": base[4:]})
    assert_same(open_weights(tmp_path), {"q": base[:2], "k": base[2:4], "v": base[4:]})


def test_saved_files_can_be_read_by_whom_the_user_lets(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        save_weights(tmp_path, {"a": torch.zeros(1)})
    finally:
        os.umask(before)
    assert (tmp_path / "model.safetensors").stat().st_mode & 0o777 == 0o644
