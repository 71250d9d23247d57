"""Weights on disk: opened without trust and without copies, and saved as safetensors."""

import os
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import prod
from pathlib import Path

from torch import Tensor

from longspan.errors import InputError, refused
from longspan.formats.atomic import as_json
from longspan.formats.files import inside, read_json
from longspan.formats.part import Part, Shapes
from longspan.formats.safetensors import open_safetensors
from longspan.formats.tensorflow import bundle_in, open_bundle
from longspan.formats.tensorflow_names import Rename, in_torch_names, torch_names
from longspan.formats.torch_save import open_torch

ALONE, INDEX = "model.safetensors", "model.safetensors.index.json"
_PLACES = {
    ALONE: ".safetensors",
    INDEX: ".safetensors",
    "pytorch_model.bin": ".bin",
    "pytorch_model.bin.index.json": ".bin",
}
SHARD_BYTES = 5_000_000_000
METADATA = {"format": "pt"}
_WRITTEN = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors|model\.safetensors\.index\.json")


class Weights(Mapping[str, Tensor]):
    """Tensors by name, each read on access; `shapes` describes all of them without reading."""

    def __init__(self, parts: list[Part]) -> None:
        self.shapes: Shapes = {name: shape for part in parts for name, shape in part.shapes.items()}
        self._read = {name: part.read for part in parts for name in part.shapes}

    def __getitem__(self, name: str) -> Tensor:
        return self._read[name](name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)

    def __repr__(self) -> str:
        size = sum(prod(shape) * dtype.itemsize for shape, dtype in self.shapes.values())
        return f"Weights({len(self)} tensors, {size:,} bytes)"


def open_weights(folder: Path, rename: Rename = torch_names) -> Weights:
    """The checked weights in a folder: safetensors, else torch's, else TensorFlow's; perhaps in shards.

    `rename` gives the variables of TensorFlow their names.
    """
    for name, suffix in _PLACES.items():
        if os.path.lexists(folder / name):
            return Weights(_parts(folder, name, suffix))
    if index := bundle_in(folder):
        path = inside(folder, index)
        return Weights([in_torch_names(open_bundle(path), path, rename)])
    raise refused(folder, "it holds no weights", f"It needs one of: {', '.join(_PLACES)}, model.ckpt.index.")


def _parts(folder: Path, name: str, suffix: str) -> list[Part]:
    open_part = open_torch if suffix == ".bin" else open_safetensors
    path = inside(folder, name)
    if not name.endswith(".json"):
        return [open_part(path)]
    weight_map = read_json(path).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(file, str) for file in weight_map.values()):
        raise refused(path, "it has no weight_map that names a file for each tensor")
    shards = {shard: inside(folder, shard, suffix) for shard in sorted(set(weight_map.values()))}
    parts = []
    for shard, place in shards.items():
        part = open_part(place)
        named = {tensor for tensor, home in weight_map.items() if home == shard}
        if named != part.shapes.keys():
            wrong = sorted(named ^ part.shapes.keys())[0][:200]
            raise refused(path, f"it and {shard} disagree about {wrong!r}", "Download or save both again.")
        parts.append(part)
    return parts


def save_weights(folder: Path, tensors: Mapping[str, Tensor], *, shard_bytes: int = SHARD_BYTES) -> None:
    """Write tensors as safetensors into a new folder, with an index if they fill several files."""
    folder.mkdir(parents=True, exist_ok=True)
    _check_apart(tensors)
    groups = _groups(tensors, shard_bytes)
    names = [f"model-{i:05d}-of-{len(groups):05d}.safetensors" for i in range(1, len(groups) + 1)]
    shards = dict(zip(names if len(groups) > 1 else [ALONE], groups, strict=True))
    for name, group in shards.items():
        write_safetensors(folder / name, group)
    if len(shards) > 1:
        size = sum(tensor.nbytes for group in groups for tensor in group.values())
        homes = {name: shard for shard, group in shards.items() for name in group}
        index = {"metadata": {"total_size": size}, "weight_map": dict(sorted(homes.items()))}
        (folder / INDEX).write_text(as_json(index))


def is_weights(name: str) -> bool:
    """Whether a file of that name holds weights that `save_weights` has written."""
    return _WRITTEN.fullmatch(name) is not None


def _check_apart(tensors: Mapping[str, Tensor]) -> None:
    """No two tensors may share memory: they would be loaded as two copies."""
    spans = sorted(
        (str(tensor.device), tensor.data_ptr(), tensor.data_ptr() + _extent(tensor), name)
        for name, tensor in tensors.items()
        if tensor.numel()
    )
    for (device, _, end, name), (next_device, begin, _, next_name) in pairwise(spans):
        if device == next_device and begin < end:
            both = f"{name!r} and {next_name!r}"
            raise InputError(f"`tensors` must not share memory, but {both} do. Save only one of them.")


def _extent(tensor: Tensor) -> int:
    """Bytes from the first element to the end of the last."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return (sum((size - 1) * step for size, step in steps) + 1) * tensor.element_size()


def _groups(tensors: Mapping[str, Tensor], shard_bytes: int) -> list[dict[str, Tensor]]:
    """The tensors in order, in groups of at most `shard_bytes`; a larger tensor is a group of its own."""
    groups: list[dict[str, Tensor]] = [{}]
    room = shard_bytes
    for name, tensor in tensors.items():
        if tensor.nbytes > room and groups[-1]:
            groups.append({})
            room = shard_bytes
        groups[-1][name] = tensor
        room -= tensor.nbytes
    return groups


def write_safetensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors to a file; a full disk is an OSError, as with other files."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    path.touch()
    mode = path.stat().st_mode  # safetensors would make the file private to the user
    try:
        save_file({name: tensor.detach().contiguous() for name, tensor in tensors.items()}, path, METADATA)
    except SafetensorError as error:  # which says in words what the system said
        if code := re.search(r"(?:os error|code:) (\d+)", str(error)):
            raise OSError(int(code[1]), os.strerror(int(code[1]))) from error
        raise
    path.chmod(mode)
