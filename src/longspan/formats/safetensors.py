"""Safetensors files: the header is checked field by field, the data are mapped and read when used."""

import os
import struct
from math import prod
from pathlib import Path
from typing import Any

import torch

from longspan.errors import refused
from longspan.formats.files import cut_off, exactly, parse_json
from longspan.formats.part import Part, Shapes

MOST_HEADER = 16 << 20
"""Bytes of the largest header read: a hundred thousand tensors (the format itself allows 100 MB)."""
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


def open_safetensors(path: Path) -> Part:
    """The tensors of a file, each a view of its mapping; writing to one does not change the file."""
    from safetensors import safe_open

    shapes = _header(path)
    return Part(shapes, safe_open(path, framework="pt", device="cpu").get_tensor)


def _header(path: Path) -> Shapes:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < 8:
            raise cut_off(path)
        (length,) = struct.unpack("<Q", exactly(file, 8, path))
        if length > MOST_HEADER:
            raise refused(path, f"its header would take {length:,} bytes", "Is it a safetensors file?")
        if length > size - 8:
            raise cut_off(path)
        data = exactly(file, length, path)
    if not data.startswith(b"{"):
        raise refused(path, "its header is not a JSON object", "Is it a safetensors file?")
    header = parse_json(data, path)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise refused(path, "its metadata are not strings")
    _check_cover(header, size - 8 - length, path)
    return {name: (tuple(entry["shape"]), DTYPES[entry["dtype"]]) for name, entry in header.items()}


def _check_cover(header: dict[str, Any], room: int, path: Path) -> None:
    """The tensors must be stored end to end, each as long as its shape says, and fill the file."""
    places = sorted((*_place(entry, name, path), name) for name, entry in header.items())
    here = 0
    for begin, end, name in places:
        if begin != here:
            raise refused(path, f"the data of {name!r} overlap others or leave a gap")
        here = end
    if here > room:
        raise cut_off(path)
    if here < room:
        raise refused(path, f"{room - here:,} bytes after the last tensor belong to nothing")


def _place(entry: Any, name: str, path: Path) -> tuple[int, int]:
    """Where a tensor begins and ends in the data, once its description is checked."""
    match entry:
        case {"dtype": str(kind), "shape": list(shape), "data_offsets": [begin, end], **rest} if not rest:
            if kind not in DTYPES:
                raise refused(path, f"{name!r} has the data type {kind[:20]!r}, which Longspan does not read")
            numbers = [*shape, begin, end]
            if len(shape) <= 64 and all(type(n) is int and 0 <= n < 1 << 62 for n in numbers):
                if end - begin != prod(shape) * DTYPES[kind].itemsize:
                    raise refused(path, f"the shape {tuple(shape)} of {name!r} does not match its bytes")
                return begin, end
    raise refused(path, f"the description of {name[:200]!r} is malformed")
