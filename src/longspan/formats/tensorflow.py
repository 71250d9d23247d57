"""TensorFlow checkpoints (tensor bundles), read without TensorFlow.

`name.index` is a LevelDB table: blocks of sorted keys, each without the prefix that it shares with the one
before, then an index of the blocks, then a footer. Values are protocol buffers: a header under the empty key,
and for each variable its type, shape, shard, offset, size and checksum. The numbers themselves are in
`name.data-00000-of-0000N`. All of it is bounded, and compared with the sizes of the files, before it is used.
"""

import mmap
import re
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from longspan.errors import refused
from longspan.formats.files import cut_off, inside
from longspan.formats.part import Part
from longspan.formats.protobuf import fields, varint

MOST_INDEX = 16 << 20
"""Bytes of the largest index read: a hundred thousand variables."""
MOST_SHARDS, MOST_DIMENSIONS, LONGEST_NAME = 4096, 64, 1024
FOOTER, TRAILER = 48, 5
CHUNK = 1 << 20
MAGIC = 0xDB4775248B80FB57
VERSION = 1
DTYPES = {  # by the numbers of TensorFlow's DataType
    1: torch.float32,
    2: torch.float64,
    3: torch.int32,
    9: torch.int64,
    14: torch.bfloat16,
    19: torch.float16,
}
AGAIN = "Download or save the checkpoint again."
_INDEX = re.compile(r"model\.ckpt(?:-(\d{1,18}))?\.index")


Message = dict[int, list[int | bytes]]


class Entry(NamedTuple):
    """What the index says about a variable."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    checksum: int


def bundle_in(folder: Path) -> str | None:
    """The name of the index in a folder: model.ckpt.index, else that of the last step, None if none."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    indexes = [match for name in names if (match := _INDEX.fullmatch(name))]
    return max(indexes, key=lambda match: (match[1] is None, int(match[1] or 0)))[0] if indexes else None


def open_bundle(path: Path) -> Part:
    """The variables of the checkpoint with this index, mapped; reading one compares its checksum."""
    if find_spec("google_crc32c") is None:
        repair = "Install it: pip install 'longspan[tensorflow]'"
        raise refused(path, "reading TensorFlow checkpoints needs google-crc32c", repair)
    size = path.stat().st_size
    if size > MOST_INDEX:
        raise refused(path, f"it takes {size:,} bytes", "Is it the index of a TensorFlow checkpoint?")
    try:
        shards, entries = _parse(path.read_bytes())
    except ValueError as error:
        raise refused(path, str(error)[:300], AGAIN) from None
    stem = path.name.removesuffix(".index")
    files = [inside(path.parent, f"{stem}.data-{i:05d}-of-{shards:05d}") for i in range(shards)]
    for shard, file in enumerate(files):
        _check_offsets({name: entry for name, entry in entries.items() if entry.shard == shard}, file)

    def tensor(name: str) -> Tensor:
        return _read(name, entries[name], files[entries[name].shard])

    return Part({name: (entry.shape, entry.dtype) for name, entry in entries.items()}, tensor)


def _parse(data: bytes) -> tuple[int, dict[str, Entry]]:
    """The number of shards, and the variables."""
    rows = _table(data)
    key, value = next(rows, (None, b""))
    if key != b"":
        raise ValueError("it has no header")
    header = _message(value)
    shards = _number(header, 1)
    if not 1 <= shards <= MOST_SHARDS:
        raise ValueError(f"it says that there are {shards:,} files")
    if _number(header, 2):
        raise ValueError("its numbers are not little-endian")
    for version in _parts(header, 3):
        if _number(_message(version), 2) > VERSION:
            raise ValueError("it was written by a TensorFlow with another format")
    return shards, {_name(key): _entry(_name(key), _message(value), shards) for key, value in rows}


def _name(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise ValueError(f"the name {key[:80]!r} is not UTF-8 text") from None


def _entry(name: str, message: Message, shards: int) -> Entry:
    """A variable's entry, checked but for its offset."""
    number, shard, size = _number(message, 1), _number(message, 3), _number(message, 5)
    if number not in DTYPES:
        raise ValueError(f"{name[:200]!r} has the data type {number}, which Longspan does not read")
    if message.get(7):
        raise ValueError(f"{name[:200]!r} is stored in slices, which Longspan does not join")
    shape, dtype = _shape(_parts(message, 2), name), DTYPES[number]
    if shard >= shards:
        raise ValueError(f"{name[:200]!r} is in file {shard} of {shards}")
    if prod(shape) * dtype.itemsize != size:
        raise ValueError(f"the shape {shape} of {name[:200]!r} does not match its {size:,} bytes")
    return Entry(dtype, shape, shard, _number(message, 4), size, _number(message, 6))


def _shape(messages: list[bytes], name: str) -> tuple[int, ...]:
    shape = _message(messages[-1]) if messages else {}
    sizes = tuple(_number(_message(dimension), 1) for dimension in _parts(shape, 2))
    if _number(shape, 3) or len(sizes) > MOST_DIMENSIONS or any(size >= 1 << 62 for size in sizes):
        raise ValueError(f"the shape of {name[:200]!r} is malformed")
    return sizes


def _message(data: bytes) -> Message:
    """The fields of a message, each with all its values."""
    message: Message = {}
    for field, value in fields(data):
        message.setdefault(field, []).append(value)
    return message


def _number(message: Message, field: int) -> int:
    """The last value of a numeric field, 0 if there is none."""
    value = message.get(field, [0])[-1]
    return value if isinstance(value, int) else int.from_bytes(value[:8], "little")


def _parts(message: Message, field: int) -> list[bytes]:
    """All values of a field that holds messages."""
    return [value for value in message.get(field, []) if isinstance(value, bytes)]


def _table(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """All keys and values of the table, in order."""
    if len(data) < FOOTER or int.from_bytes(data[-8:], "little") != MAGIC:
        raise ValueError("it is not the index of a TensorFlow checkpoint, or was cut off")
    footer, room = data[-FOOTER:-8], len(data) - FOOTER
    _, _, here = _handle(footer, 0)  # of a block that TensorFlow leaves empty
    begin, size, _ = _handle(footer, here)
    last, taken = None, 0
    for _, handle in _block(data, begin, size, room):
        begin, size, _ = _handle(handle, 0)
        if begin < taken:
            raise ValueError("its blocks overlap")
        taken = begin + size
        for key, value in _block(data, begin, size, room):
            if last is not None and key <= last:
                raise ValueError("its names are not sorted, or appear twice")
            last = key
            yield key, value


def _handle(data: bytes, here: int) -> tuple[int, int, int]:
    """Where a block begins, its size, and where this handle ends."""
    begin, here = varint(data, here)
    size, here = varint(data, here)
    return begin, size, here


def _block(data: bytes, begin: int, size: int, room: int) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of one block."""
    end = begin + size
    if end + TRAILER > room:
        raise ValueError("a block is outside the file")
    if data[end]:
        raise ValueError("it is compressed")
    if crc32c(data[begin : end + 1]) != unmasked(int.from_bytes(data[end + 1 : end + TRAILER], "little")):
        raise ValueError("a block does not match its checksum")
    block = data[begin:end]
    count = int.from_bytes(block[-4:], "little")  # of restarts, where a key is whole; we read from the start
    stop = size - 4 * (count + 1)
    if size < 4 or stop < 0:
        raise ValueError("a block is malformed")
    here, key = 0, b""
    while here < stop:
        shared, here = varint(block, here)
        rest, here = varint(block, here)
        length, here = varint(block, here)
        if shared > len(key) or here + rest + length > stop:
            raise ValueError("a block is malformed")
        if shared + rest > LONGEST_NAME:
            raise ValueError(f"a name has {shared + rest:,} bytes")
        key, here = key[:shared] + block[here : here + rest], here + rest
        yield key, block[here : here + length]
        here += length


def _check_offsets(entries: dict[str, Entry], file: Path) -> None:
    """No variable may reach beyond the end of its file or into another one."""
    room = file.stat().st_size
    spans = sorted((entry.offset, entry.offset + entry.size, name) for name, entry in entries.items())
    if any(end > room for _, end, _ in spans):
        raise cut_off(file)
    for (_, end, _), (begin, _, name) in pairwise(span for span in spans if span[0] < span[1]):
        if begin < end:
            raise refused(file, f"the data of {name[:200]!r} overlap others", AGAIN)


def _read(name: str, entry: Entry, file: Path) -> Tensor:
    """A view of the mapped file; a copy where the numbers are not aligned."""
    if not entry.size:
        return torch.empty(entry.shape, dtype=entry.dtype)
    with file.open("rb") as opened:
        mapped = mmap.mmap(opened.fileno(), entry.offset + entry.size, access=mmap.ACCESS_COPY)
    part = memoryview(mapped)[entry.offset :]
    if crc32c(part) != unmasked(entry.checksum):
        raise refused(file, f"the data of {name[:200]!r} do not match their checksum", AGAIN)
    if entry.offset % entry.dtype.itemsize:
        part = memoryview(bytearray(part))
    return torch.frombuffer(part, dtype=entry.dtype).view(entry.shape)


def crc32c(data: bytes | memoryview) -> int:
    """The checksum that TensorFlow and LevelDB use.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    from google_crc32c import extend

    state = 0
    for start in range(0, len(data), CHUNK):  # the library takes bytes only, so a mapping is copied in pieces
        state = extend(state, bytes(data[start : start + CHUNK]))
    return state


def unmasked(stored: int) -> int:
    """The checksum that TensorFlow stored masked: rotated, with a constant added.

    >>> hex(unmasked(0xA282EAD8 + 0x12345678 & 0xFFFFFFFF))
    '0x2b3c091a'
    """
    rotated = (stored - 0xA282EAD8) & 0xFFFFFFFF
    return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF
