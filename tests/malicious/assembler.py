"""Pickles written opcode by opcode; the values that ordinary ones hold are encoded by pickle itself."""

import pickle
import struct


def plain(value: object) -> bytes:
    """The opcodes that push a plain value."""
    return pickle.dumps(value, 2)[2:-1]


def whole(*opcodes: bytes, protocol: int = 2) -> bytes:
    """A complete pickle."""
    return b"\x80" + bytes([protocol]) + b"".join(opcodes) + b"."


def name(module: str, attribute: str) -> bytes:
    """Push a global."""
    return f"c{module}\n{attribute}\n".encode()


def call(function: bytes, *arguments: bytes) -> bytes:
    """Push what the function returns."""
    return function + b"(" + b"".join(arguments) + b"tR"


def word(text: str) -> bytes:
    data = text.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def short_word(text: str) -> bytes:
    """As word, in the way of protocol 4."""
    data = text.encode()
    return b"\x8c" + bytes([len(data)]) + data


def state_dict(*items: bytes) -> bytes:
    """Push an OrderedDict that holds the names and values given in turn."""
    return call(name("collections", "OrderedDict")) + b"(" + b"".join(items) + b"u"


def storage(kind: str = "FloatStorage", key: str = "0", size: bytes = plain(6), end: bytes = b"") -> bytes:
    """Push a storage, by its persistent id."""
    return b"(" + word("storage") + name("torch", kind) + word(key) + word("cpu") + size + end + b"tQ"


def tensor(
    kept: bytes | None = None,
    offset: object = 0,
    shape: object = (2, 3),
    stride: object = (3, 1),
    hooks: bytes = call(name("collections", "OrderedDict")),
    more: bytes = b"",
) -> bytes:
    """Push a tensor, in the way of torch.save unless told otherwise."""
    view = plain(offset) + plain(shape) + plain(stride) + plain(False)
    return call(name("torch._utils", "_rebuild_tensor_v2"), kept or storage(), view, hooks, more)
