"""The three kinds of files that a pickle can come in, written byte by byte."""

import io
import pickle
import struct
import zipfile
from collections.abc import Mapping

MAGIC = 0x1950A86A20F9469CFC6C
SYSTEM = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
DATA = {"0": bytes(24)}


def archive(parts: Mapping[str, bytes], *, method: int = zipfile.ZIP_STORED) -> bytes:
    """A zip file with these members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, data in parts.items():
            file.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def torch_parts(code: bytes, data: Mapping[str, bytes] = DATA) -> dict[str, bytes]:
    """The members that torch.save writes around a pickle."""
    storages = {f"m/data/{key}": value for key, value in data.items()}
    return {"m/data.pkl": code, "m/byteorder": b"little", **storages, "m/version": b"3\n"}


def in_zip(code: bytes, data: Mapping[str, bytes] = DATA) -> bytes:
    """What torch.save writes today."""
    return archive(torch_parts(code, data))


def in_legacy(code: bytes, data: Mapping[str, bytes] = DATA) -> bytes:
    """What torch.save wrote before torch 1.6, with float32 storages whose ids end with None."""
    code = code.replace(b"tQ", b"NtQ")
    head = [pickle.dumps(value, 2) for value in (MAGIC, 1001, SYSTEM)]
    tail = [struct.pack("<q", len(value) // 4) + value for value in data.values()]
    return b"".join([*head, code, pickle.dumps(list(data), 2), *tail])


def bare(code: bytes, data: Mapping[str, bytes] = DATA) -> bytes:
    """The pickle alone."""
    return code


CONTAINERS = {"zip": in_zip, "legacy": in_legacy, "bare": bare}
