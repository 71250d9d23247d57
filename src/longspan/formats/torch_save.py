"""Files written by torch.save: understood by us first, and only then read by torch's restricted reader."""

import io
import re
import struct
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from longspan.errors import refused
from longspan.formats.files import cut_off, exactly
from longspan.formats.pickles import MOST_BYTES, Described, Storage, read
from longspan.formats.safetensors import Part
from longspan.formats.zips import Member, members

OLDEST_TORCH = "2.10"
"""Earlier releases of torch.load can be made to run code or to corrupt memory even with `weights_only`."""
SAFER = "Get the model as safetensors."
_ZIP = b"PK\3\4"
_LEGACY = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."  # torch's magic number, pickled
_MEMBER = re.compile(r"([^/\\\0]{1,200})/(data\.pkl|version|byteorder|\.[\w/]{1,40}|data/\d{1,20})", re.ASCII)


def open_bin(path: Path) -> Part:
    """The tensors of a state dict that torch.save wrote, in today's zip format or that before torch 1.6."""
    if torch.__version__ < OLDEST_TORCH:
        repair = f"Install torch {OLDEST_TORCH} or newer."
        raise refused(path, f"torch {torch.__version__} cannot read it safely", repair)
    with path.open("rb") as file:
        start = file.read(len(_LEGACY))
        if start == _LEGACY:
            return _open_legacy(file, path)
    if not start.startswith(_ZIP):
        raise refused(path, "it is not a file of torch.save, or was cut off", SAFER)
    return _open_zip(path)


def _open_zip(path: Path) -> Part:
    found = _checked_members(path)
    place = found["data.pkl"]
    if place.size > MOST_BYTES:
        raise refused(path, f"its pickle takes {place.size:,} bytes", SAFER)
    with path.open("rb") as file:
        file.seek(place.begin)
        stream = io.BytesIO(exactly(file, place.size, path))
    value, storages = _read(stream, path)
    if stream.read(1):
        raise refused(path, "something stands behind its pickle", SAFER)
    for storage in storages.values():
        member = found.get(f"data/{storage.key}")
        if member is None or member.size != storage.bytes:
            raise refused(path, f"the storage {storage.key} is absent or not of the size described", SAFER)
    described = _state_dict(value, path)

    @cache
    def loaded() -> Any:
        try:
            return _unwrapped(torch.load(path, map_location="cpu", weights_only=True, mmap=True))
        except Exception as error:  # never another way of reading
            raise refused(path, f"torch cannot read it ({type(error).__name__})", SAFER) from error

    def tensor(name: str) -> Tensor:
        found = loaded()[name]
        if not isinstance(found, Tensor) or (tuple(found.shape), found.dtype) != shapes[name]:
            raise refused(path, f"torch reads {name!r} in another way than Longspan", SAFER)
        return found.detach()

    shapes = {name: (item.shape, item.storage.dtype) for name, item in described.items()}
    return Part(shapes, tensor)


def _checked_members(path: Path) -> dict[str, Member]:
    """The zip's members by their names inside its one folder; only what torch.save writes is let in."""
    found: dict[str, Member] = {}
    folders = set()
    for name, member in members(path).items():
        match = _MEMBER.fullmatch(name)
        if match is None or match[1] in (".", ".."):
            raise refused(path, f"the member {name[:80]!r} is not one that torch.save writes", SAFER)
        folders.add(match[1])
        found[match[2]] = member
    if len(folders) != 1 or "data.pkl" not in found:
        raise refused(path, "it is not a file of torch.save: it has no data.pkl, or several folders", SAFER)
    if "byteorder" in found:
        begin, size = found["byteorder"]
        with path.open("rb") as file:
            file.seek(begin)
            if exactly(file, min(size, 16), path) != b"little":
                raise refused(path, "its numbers are not little-endian", SAFER)
    return found


def _open_legacy(file: BinaryIO, path: Path) -> Part:
    """Five pickles, then each storage as its size and its bytes, which are not aligned and so are copied."""
    file.seek(0)
    stream = io.BytesIO(file.read(MOST_BYTES))
    _read(stream, path)  # the magic number
    version, _ = _read(stream, path)
    system, _ = _read(stream, path)
    value, storages = _read(stream, path)
    keys, _ = _read(stream, path)
    if version != 1001 or not isinstance(system, dict) or system.get("little_endian") is not True:
        raise refused(path, "it has another version or byte order than torch.save writes", SAFER)
    if not isinstance(keys, list) or not all(type(key) is str for key in keys):
        raise refused(path, "its list of storages is not a list of words", SAFER)
    if sorted(keys) != sorted(storages):
        raise refused(path, "its list of storages is not that of its tensors", SAFER)
    begins: dict[str, int] = {}
    here, size = stream.tell(), file.seek(0, io.SEEK_END)
    for key in keys:
        if here + 8 + storages[key].bytes > size:
            raise cut_off(path)
        file.seek(here)
        if struct.unpack("<q", exactly(file, 8, path)) != (storages[key].size,):
            raise refused(path, f"the storage {key} is not of the size described", SAFER)
        begins[key] = here + 8
        here += 8 + storages[key].bytes
    if here != size:
        raise refused(path, f"{size - here:,} bytes behind the last storage belong to nothing", SAFER)
    described = _state_dict(value, path)

    @cache
    def data(storage: Storage) -> Tensor:
        with path.open("rb") as file:
            file.seek(begins[storage.key])
            raw = bytearray(exactly(file, storage.bytes, path))
        return torch.frombuffer(raw, dtype=storage.dtype) if raw else torch.empty(0, dtype=storage.dtype)

    def tensor(name: str) -> Tensor:
        found = described[name]
        return data(found.storage).as_strided(found.shape, found.stride, found.offset)

    return Part({name: (item.shape, item.storage.dtype) for name, item in described.items()}, tensor)


def _read(stream: BinaryIO, path: Path) -> tuple[object, dict[str, Storage]]:
    try:
        return read(stream)
    except ValueError as error:
        raise refused(path, str(error)[:300], SAFER) from None


def _unwrapped(value: Any) -> Any:
    """The state dict inside a training checkpoint, or the value itself."""
    inner = value.get("state_dict") if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else value


def _state_dict(value: object, path: Path) -> Mapping[str, Described]:
    found = _unwrapped(value)
    if not isinstance(found, dict):
        raise refused(path, "it does not hold a state dict", SAFER)
    for name, tensor in found.items():
        if not isinstance(name, str) or not isinstance(tensor, Described):
            raise refused(path, f"{str(name)[:80]!r} in it is not the name of a tensor", SAFER)
    return found
