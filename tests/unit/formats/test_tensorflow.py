"""TensorFlow's checkpoints are read without TensorFlow, number for number."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from longspan.errors import CheckpointError
from longspan.formats import tensorflow
from longspan.formats.part import Part
from longspan.formats.tensorflow import bundle_in, crc32c, open_bundle
from longspan.formats.tensorflow_names import in_torch_names, torch_names
from longspan.formats.weights import open_weights
from unit.formats import bundle

REAL = Path(__file__).parents[1] / "checkpoints" / "etc_checkpoints"
DTYPES = list(bundle.KINDS)


def opened(folder: Path) -> Part:
    name = bundle_in(folder)
    assert name is not None
    return open_bundle(folder / name)


@pytest.mark.parametrize("size", [0, 1, 6, 7, 8, 14, 97])
def test_checksums_are_those_of_the_textbook(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorflow, "CHUNK", 7)
    data = np.random.default_rng(size).bytes(size)
    assert crc32c(data) == crc32c(memoryview(data)) == bundle.crc(data)


@pytest.mark.parametrize("sharing", ["all", "sides", "none"])
def test_what_tensorflow_wrote_is_read(sharing: str) -> None:
    part = opened(REAL / sharing)
    assert part.shapes["global_step"] == ((), torch.int64)
    assert int(part.read("global_step")) == 0
    words = part.read("etc_document_bert/token_emb_lookup/embedding_table")
    assert words.shape == (29, 5 if sharing == "sides" else 8)
    for name, (shape, dtype) in part.shapes.items():
        found = part.read(name)
        assert (tuple(found.shape), found.dtype) == (shape, dtype)
        if name.endswith("gamma"):
            assert 0.5 < float(found.mean()) < 1.5


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_all_types_and_shapes_come_back_bit_for_bit_from_several_files(tmp_path: Path, shards: int) -> None:
    draw = torch.Generator().manual_seed(0)
    tensors = {
        f"{dtype}/{'x'.join(map(str, shape))}": (torch.randn(shape, generator=draw) * 99).to(dtype)
        for dtype in DTYPES
        for shape in [(), (1,), (3, 5), (2, 3, 7), (0, 4)]
    }
    bundle.write(tmp_path, tensors, shards=shards)
    part = opened(tmp_path)
    assert part.shapes == {name: (tuple(t.shape), t.dtype) for name, t in sorted(tensors.items())}
    for name, tensor in tensors.items():
        assert bundle.raw(part.read(name)) == bundle.raw(tensor)


def test_numbers_that_are_not_aligned_are_read_too(tmp_path: Path) -> None:
    tensors = {"a": torch.tensor([1.5], dtype=torch.float16), "b": torch.arange(5, dtype=torch.float64)}
    bundle.write(tmp_path, tensors)
    assert torch.equal(opened(tmp_path).read("b"), tensors["b"])


def test_writing_to_what_was_read_does_not_change_the_file(tmp_path: Path) -> None:
    bundle.write(tmp_path, {"a": torch.ones(4)})
    opened(tmp_path).read("a").zero_()
    assert torch.equal(opened(tmp_path).read("a"), torch.ones(4))


def test_the_checkpoint_without_a_step_is_read_else_that_of_the_last_step(tmp_path: Path) -> None:
    assert bundle_in(tmp_path) is None
    for step in (9, 10, 100):
        bundle.write(tmp_path, {"a": torch.tensor(float(step))}, name=f"model.ckpt-{step}")
    assert bundle_in(tmp_path) == "model.ckpt-100.index"
    bundle.write(tmp_path, {"a": torch.tensor(0.0)})
    assert bundle_in(tmp_path) == "model.ckpt.index"


def test_names_are_torchs_kernels_transposed_and_the_optimizers_variables_left_out(tmp_path: Path) -> None:
    kernel = torch.arange(15.0).view(3, 5)
    layer = "model/dense_layers/layer_0"
    bundle.write(
        tmp_path,
        {
            f"{layer}/kernel": kernel,
            f"{layer}/bias": torch.ones(5),
            f"{layer}/kernel/adam_m": kernel,
            f"{layer}/kernel/adam_v": kernel,
            "model/norm/gamma": torch.ones(2),
            "model/norm/beta": torch.zeros(2),
            "global_step": torch.tensor(7),
        },
    )
    weights = open_weights(tmp_path)
    modules = "model.dense_layers.layer_0", "model.norm"
    assert list(weights) == [f"{module}.{leaf}" for module in modules for leaf in ("bias", "weight")]
    assert weights.shapes["model.dense_layers.layer_0.weight"] == ((5, 3), torch.float32)
    assert torch.equal(weights["model.dense_layers.layer_0.weight"], kernel.T)


def test_two_variables_that_would_be_one_weight_are_refused() -> None:
    shape = ((2,), torch.float32)
    part = Part({"a/gamma": shape, "a/kernel": shape}, lambda name: torch.zeros(2))
    with pytest.raises(CheckpointError, match="are the same weight"):
        in_torch_names(part, "model.ckpt.index", torch_names)


def test_without_the_library_for_checksums_its_name_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle.write(tmp_path, {"a": torch.ones(4)})
    monkeypatch.setitem(sys.modules, "google_crc32c", None)
    words = r"model.ckpt.index` is refused: .* needs google-crc32c. .*pip install 'longspan\[tensorflow\]'"
    with pytest.raises(CheckpointError, match=words):
        open_weights(tmp_path)
