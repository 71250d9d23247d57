"""Files written by torch.save: scanned by us first, then read by torch's restricted unpickler."""

import io
import re
import struct
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from longspan.errors import refused
from longspan.formats.files import cut_off, exactly
from longspan.formats.part import Part, Shapes
from longspan.formats.pickles import MOST_BYTES, Storage, scan
from longspan.formats.zips import Member, members

OLDEST_TORCH = "2.10"
"""Earlier releases of torch.load can be made to run code or to corrupt memory even with `weights_only`."""
SAFER = "Get the model as safetensors."
_ZIP = b"PK\3\4"
_LEGACY = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."  # torch's magic number, pickled
_MEMBER = re.compile(r"([^/\\\0]{1,200})/(data\.pkl|version|byteorder|\.[\w/]{1,40}|data/\d{1,20})", re.ASCII)


def open_torch(path: Path) -> Part:
    """The tensors of a state dict that torch.save wrote, in today's zip format or that before torch 1.6."""
    if torch.__version__ < OLDEST_TORCH:
        repair = f"Install torch {OLDEST_TORCH} or newer."
        raise refused(path, f"torch {torch.__version__} cannot read it safely", repair)
    with path.open("rb") as file:
        start = file.read(len(_LEGACY))
        if start == _LEGACY:
            file.seek(0)
            _scan_legacy(file, path)
            with torch.serialization.skip_data():
                shapes = _shapes(_load(path), path)
            loaded = cache(lambda: _load(path))  # copied as a whole: the format cannot be mapped
            return Part(shapes, lambda name: loaded()[name].detach())
    if not start.startswith(_ZIP):
        raise refused(path, "it is not a file of torch.save, or was cut off", SAFER)
    _scan_zip(path)
    tensors = _load(path, mmap=True)
    return Part(_shapes(tensors, path), lambda name: tensors[name].detach())


def _load(path: Path, *, mmap: bool = False) -> dict[str, Tensor]:
    """The state dict, perhaps inside a training checkpoint."""
    try:
        value = torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    except Exception as error:  # never another way of reading
        raise refused(path, f"torch cannot read it ({type(error).__name__})", SAFER) from error
    inner = value.get("state_dict") if isinstance(value, dict) else None
    state_dict = inner if isinstance(inner, dict) else value
    if not isinstance(state_dict, dict):
        raise refused(path, "it does not hold a state dict", SAFER)
    return state_dict


def _shapes(tensors: dict[Any, Any], path: Path) -> Shapes:
    """The shapes of a state dict that holds nothing but tensors, none larger than its storage."""
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise refused(path, f"{str(name)[:80]!r} in it is not the name of a tensor", SAFER)
        reach = (tensor.storage_offset() + tensor.numel()) * tensor.itemsize
        if reach > tensor.untyped_storage().nbytes():
            raise refused(path, f"{name[:80]!r} shows more elements than its storage has", SAFER)
    return {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()}


def _scan_zip(path: Path) -> None:
    """Refuse a zip file that torch.save would not have written."""
    places = _checked_members(path)
    begin, size = places["data.pkl"]
    if size > MOST_BYTES:
        raise refused(path, f"its pickle takes {size:,} bytes", SAFER)
    with path.open("rb") as file:
        file.seek(begin)
        stream = io.BytesIO(exactly(file, size, path))
    _, storages = _scan(stream, path)
    if stream.read(1):
        raise refused(path, "something follows its pickle", SAFER)
    for storage in storages.values():
        member = places.get(f"data/{storage.key}")
        if member is None or member.size != storage.nbytes:
            raise refused(path, f"the storage {storage.key} is absent or not of the size described", SAFER)


def _checked_members(path: Path) -> dict[str, Member]:
    """The members by their names inside the one folder of the zip; only what torch.save writes is allowed."""
    places: dict[str, Member] = {}
    folders = set()
    for name, member in members(path).items():
        match = _MEMBER.fullmatch(name)
        if match is None or match[1] in (".", ".."):
            raise refused(path, f"the member {name[:80]!r} is not one that torch.save writes", SAFER)
        folders.add(match[1])
        places[match[2]] = member
    if len(folders) != 1 or "data.pkl" not in places:
        raise refused(path, "it is not a file of torch.save: it has no data.pkl, or several folders", SAFER)
    if "byteorder" in places:
        begin, size = places["byteorder"]
        with path.open("rb") as file:
            file.seek(begin)
            if exactly(file, min(size, 16), path) != b"little":
                raise refused(path, "its numbers are not little-endian", SAFER)
    return places


def _scan_legacy(file: BinaryIO, path: Path) -> None:
    """Refuse anything but five pickles, then the size and the bytes of each storage, then the end."""
    stream = io.BytesIO(file.read(MOST_BYTES))
    _scan(stream, path)  # the magic number
    version, _ = _scan(stream, path)
    system, _ = _scan(stream, path)
    _, storages = _scan(stream, path)
    keys, _ = _scan(stream, path)
    if version != 1001 or not isinstance(system, dict) or system.get("little_endian") is not True:
        raise refused(path, "it has another version or byte order than torch.save writes", SAFER)
    if not isinstance(keys, list) or not all(type(key) is str for key in keys):
        raise refused(path, "its list of storages is not a list of strings", SAFER)
    if sorted(keys) != sorted(storages):
        raise refused(path, "its list of storages is not that of its tensors", SAFER)
    here, size = stream.tell(), file.seek(0, io.SEEK_END)
    for key in keys:
        end = here + 8 + storages[key].nbytes
        if end > size:
            raise cut_off(path)
        file.seek(here)
        if struct.unpack("<q", exactly(file, 8, path)) != (storages[key].size,):
            raise refused(path, f"the storage {key} is not of the size described", SAFER)
        here = end
    if here != size:
        raise refused(path, f"{size - here:,} bytes after the last storage belong to nothing", SAFER)


def _scan(stream: BinaryIO, path: Path) -> tuple[object, dict[str, Storage]]:
    try:
        return scan(stream)
    except ValueError as error:
        raise refused(path, str(error)[:300], SAFER) from None
