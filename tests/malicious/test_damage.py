"""A file that was cut off, or of which a byte was changed, is refused or read as it says: never a crash."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from longspan.errors import CheckpointError
from longspan.formats.weights import open_weights, save_weights

Files = dict[str, tuple[str, bytes]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Good weights in each format: format -> (file name, bytes)."""
    folder = tmp_path_factory.mktemp("good")
    tensors = {f"layers.{i}.weight": torch.full((7, 11), float(i)) for i in range(5)}
    save_weights(folder, tensors)
    torch.save(tensors, folder / "zip")
    torch.save(tensors, folder / "legacy", _use_new_zipfile_serialization=False)
    return {
        "safetensors": ("model.safetensors", (folder / "model.safetensors").read_bytes()),
        "zip": ("pytorch_model.bin", (folder / "zip").read_bytes()),
        "legacy": ("pytorch_model.bin", (folder / "legacy").read_bytes()),
    }


@pytest.mark.parametrize("percent", range(100))
@pytest.mark.parametrize("kind", ["safetensors", "zip", "legacy"])
def test_a_file_that_was_cut_off_is_refused(
    kind: str, percent: int, files: Files, refused_weights: Callable[[str, bytes], str]
) -> None:
    name, data = files[kind]
    refused_weights(name, data[: len(data) * percent // 100])


@pytest.mark.parametrize("kind", ["safetensors", "zip", "legacy"])
def test_a_changed_byte_never_leads_to_another_error(kind: str, files: Files, tmp_path: Path) -> None:
    name, data = files[kind]
    step = max(1, len(data) // 300)
    for place in range(0, len(data), step):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        (tmp_path / name).write_bytes(changed)
        try:
            weights = open_weights(tmp_path)
            assert all(tensor.numel() <= len(data) for tensor in weights.values())
        except CheckpointError:
            pass
