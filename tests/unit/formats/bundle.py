"""Checkpoints as TensorFlow writes them, made byte by byte from the published description of the format."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unit.text.tiny import field, varint

MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
KINDS = {
    torch.float32: 1,
    torch.float64: 2,
    torch.int32: 3,
    torch.int64: 9,
    torch.bfloat16: 14,
    torch.float16: 19,
}
Rows = Sequence[tuple[bytes, bytes]]


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = _table()


def crc(data: bytes) -> int:
    """CRC-32C, a byte at a time."""
    state = 0xFFFFFFFF
    for byte in data:
        state = TABLE[(state ^ byte) & 255] ^ (state >> 8)
    return state ^ 0xFFFFFFFF


def masked(data: bytes) -> bytes:
    """The checksum as it is stored."""
    found = crc(data)
    return struct.pack("<I", ((found >> 15 | found << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def header(shards: int = 1, *, endianness: int = 0, needs: int = 0) -> bytes:
    return field(1, shards) + field(2, endianness) + field(3, field(1, 1) + field(2, needs))


def entry(
    data: bytes,
    shape: Sequence[int],
    *,
    kind: int = 1,
    shard: int = 0,
    begin: int = 0,
    size: int | None = None,
    more: bytes = b"",
) -> bytes:
    """What the index says of a variable."""
    sizes = b"".join(field(2, field(1, number % 2**64)) for number in shape)
    place = field(3, shard) + field(4, begin) + field(5, len(data) if size is None else size)
    return field(1, kind) + field(2, sizes) + place + varint(6 << 3 | 5) + masked(data) + more


def block(rows: Rows, *, restart: int = 16) -> bytes:
    """Sorted rows, keys without what they share with the one before; every 16th stands whole."""
    out, starts, last = b"", [], b""
    for number, (key, value) in enumerate(rows):
        shared = 0
        if number % restart == 0:
            starts.append(len(out))
        else:
            while shared < min(len(key), len(last)) and key[shared] == last[shared]:
                shared += 1
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    starts = starts or [0]
    return out + struct.pack(f"<{len(starts) + 1}I", *starts, len(starts))


def index(blocks: Sequence[tuple[bytes, bytes]]) -> bytes:
    """A table of blocks, each with its last key."""
    out, handles = b"", []
    for last, body in [*blocks, (b"", block([]))]:
        handles.append((last, varint(len(out)) + varint(len(body))))
        out += body + b"\0" + masked(body + b"\0")
    body, (*places, (_, meta)) = block(handles[:-1], restart=1), handles
    assert len(places) == len(blocks)
    footer = meta + varint(len(out)) + varint(len(body))
    return out + body + b"\0" + masked(body + b"\0") + footer.ljust(40, b"\0") + MAGIC


def table(rows: Rows, *, size: int = 7) -> bytes:
    """The rows in blocks of `size`."""
    parts = [rows[i : i + size] for i in range(0, len(rows), size)]
    return index([(part[-1][0], block(part)) for part in parts])


def raw(tensor: Tensor) -> bytes:
    return bytes(tensor.contiguous().view(-1).view(torch.uint8).numpy()) if tensor.numel() else b""


def write(folder: Path, tensors: Mapping[str, Any], *, shards: int = 1, name: str = "model.ckpt") -> None:
    """A checkpoint of these tensors (or arrays), dealt out to files in turn."""
    files = [b""] * shards
    rows = [(b"", header(shards))]
    for number, (key, value) in enumerate(sorted(tensors.items(), key=lambda item: item[0].encode())):
        tensor = torch.from_numpy(np.array(value)) if not isinstance(value, Tensor) else value
        data, shard = raw(tensor), number % shards
        described = entry(data, tensor.shape, kind=KINDS[tensor.dtype], shard=shard, begin=len(files[shard]))
        rows.append((key.encode(), described))
        files[shard] += data
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.index").write_bytes(table(rows))
    for shard, data in enumerate(files):
        (folder / f"{name}.data-{shard:05d}-of-{shards:05d}").write_bytes(data)
