"""Safetensors files, each wrong in one way."""

import json
import struct
from typing import Any


def safetensors(header: Any, data: bytes = bytes(24), *, length: int | None = None) -> bytes:
    """A file with this header, given as text or as a value; `length` is what it says about its header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(
    shape: object = (2, 3), begin: object = 0, end: object = 24, dtype: object = "F32"
) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


GOOD = safetensors({"a": entry()})


def headers() -> dict[str, bytes]:
    """Name of the trick -> file."""
    one = json.dumps(entry()).encode()
    bad: dict[str, Any] = {
        "2^62 elements": entry([2**62], 0, 24),
        "2^62 elements and their bytes": entry([2**62], 0, 2**64),
        "2^61 elements and their bytes": entry([2**59], 0, 2**61),
        "a size that wraps around": entry([2**32, 2**32], 0, 0),
        "a size that wraps to the truth": entry([2**62, 2, 2, 6], 0, 24),
        "a negative size": entry([-2, -3]),
        "a fractional size": entry([2.0, 3]),
        "a truth value for a size": entry([True, 6]),
        "a word for a size": entry(["2", 3]),
        "no shape": {"dtype": "F32", "data_offsets": [0, 24]},
        "a number for a shape": entry(6),
        "65 sizes": entry([1] * 64 + [6]),
        "a shape that is too small": entry([2, 2]),
        "an end before the beginning": entry(begin=24, end=0),
        "an end outside of the file": entry([2, 4], 0, 32),
        "a beginning inside of the file": entry([2, 2], 8, 24),
        "one place only": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0]},
        "three places": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24, 24]},
        "negative places": entry(begin=-24, end=0),
        "fractional places": entry(begin=0.0, end=24.0),
        "an unknown type": entry(dtype="F33"),
        "a type that is a word of torch": entry(dtype="torch.float32"),
        "a type that is a number": entry(dtype=1),
        "one word too many": {**entry(), "code": "import os"},
        "a list": [1],
        "nothing": None,
    }
    return {
        **{what: safetensors({"a": description}) for what, description in bad.items()},
        "tensors on top of each other": safetensors({"a": entry(), "b": entry()}),
        "a gap": safetensors({"a": entry([2], 0, 8), "b": entry([2], 16, 24)}),
        "bytes that belong to nothing": safetensors({"a": entry()}, bytes(32)),
        "no tensors but data": safetensors({}),
        "metadata that are not words": safetensors({"a": entry(), "__metadata__": {"format": 1}}),
        "metadata that are a list": safetensors({"a": entry(), "__metadata__": []}),
        "a name twice": safetensors(b'{"a":' + one + b',"a":' + one + b"}"),
        "a header that is a list": safetensors([entry()]),
        "a header that is no JSON": safetensors(b"{import os}"),
        "a header that is cut off": safetensors(b'{"a":' + one),
        "a header with a NaN": safetensors(b'{"a": NaN}'),
        "a header that is not UTF-8": safetensors(b'{"\xff":' + one + b"}"),
        "a header that begins with a space": safetensors(b' {"a":' + one + b"}"),
        "a header nested without end": safetensors(b'{"a":' * 200_000),
        "a header of lists without end": safetensors(b'{"a":' + b"[" * 200_000),
        "a number without end": safetensors(b'{"a":' + b"9" * 200_000 + b"}"),
        "a header of 2^63 bytes": safetensors({"a": entry()}, length=2**63),
        "a header of 2^64 - 1 bytes": safetensors({"a": entry()}, length=2**64 - 1),
        "a header of 99 MB": safetensors({"a": entry()}, length=99_000_000),
        "a header longer than the file": safetensors({"a": entry()}, length=1000),
        "a header of 20 MB": safetensors(b"{" + b" " * (20 << 20) + b"}"),
        "a header without a byte": safetensors({"a": entry()}, length=0),
        "seven bytes": GOOD[:7],
        "an empty file": b"",
        "a pickle": b"\x80\x02cos\nsystem\n.",
    }
