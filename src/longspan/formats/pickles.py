"""A pickle of tensors, scanned before torch's restricted unpickler reads it.

`torch.load(weights_only=True)` runs no code, but a file can still make it hang, crash, claim any amount of
memory or hand out memory that was never written (docs/decisions/0018). The scan follows the opcodes with
inert values on the stack and lets through only what torch.save writes for weights.
"""

import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

import torch

MOST_BYTES = 8 << 20
"""The longest pickle that is scanned; the data of the tensors are stored elsewhere."""
MOST_OPCODES = 200_000
"""Enough for some six thousand tensors."""
MOST_DIMENSIONS = 64

STORAGES = {
    "torch FloatStorage": torch.float32,
    "torch HalfStorage": torch.float16,
    "torch BFloat16Storage": torch.bfloat16,
    "torch DoubleStorage": torch.float64,
    "torch LongStorage": torch.int64,
    "torch IntStorage": torch.int32,
    "torch ShortStorage": torch.int16,
    "torch CharStorage": torch.int8,
    "torch ByteStorage": torch.uint8,
    "torch BoolStorage": torch.bool,
}
DICT, SIZE = "collections OrderedDict", "torch Size"
TENSOR, PARAMETER = "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_parameter"


@dataclass(frozen=True)
class Storage:
    """`size` elements kept in the file under `key`."""

    key: str
    dtype: torch.dtype
    size: int

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize


@dataclass(frozen=True)
class _Global:
    """An allowed name; what it stands for is never looked up."""

    name: str


class _Tensor:
    """Stands for a tensor or a parameter."""


def scan(stream: BinaryIO) -> tuple[object, dict[str, Storage]]:
    """The value of the pickle that begins here, without its tensors, and the storages that it refers to.

    ValueError says what torch.save would not have written.
    """
    stack: list[object] = []
    marked: list[list[object]] = []
    memo: dict[Any, object] = {}
    storages: dict[str, Storage] = {}
    try:
        for step, (opcode, argument, _) in enumerate(pickletools.genops(stream)):
            name = opcode.name
            if (step == 0) != (name == "PROTO") or (step == 0 and argument != 2):
                raise ValueError("its pickle is not of protocol 2, which torch.save writes")
            if step >= MOST_OPCODES:
                raise ValueError(f"its pickle has more than {MOST_OPCODES:,} opcodes")
            if name in _CONSTANTS:
                stack.append(_CONSTANTS[name](argument))
            elif name in ("BINPUT", "LONG_BINPUT"):
                memo[argument] = stack[-1]
            elif name in ("BINGET", "LONG_BINGET"):
                stack.append(memo[argument])
            elif name == "MARK":
                marked.append(stack)
                stack = []
            elif name in _ACTIONS:
                items: list[object] = []
                below = len(opcode.stack_before)
                if pickletools.markobject in opcode.stack_before:
                    items, stack, below = stack, marked.pop(), below - 2
                if below > len(stack):
                    raise IndexError
                items = stack[len(stack) - below :] + items
                stack[len(stack) - below :] = [value := _ACTIONS[name](items)]
                if isinstance(value, Storage) and storages.setdefault(value.key, value) != value:
                    raise ValueError(f"the storage {value.key} is described in two ways")
            elif name not in ("PROTO", "STOP"):
                raise ValueError(f"its pickle uses {name}, which plain weights do not need")
    except (IndexError, KeyError):
        raise ValueError("its pickle is malformed") from None
    if marked or len(stack) != 1:
        raise ValueError("its pickle leaves something on the stack")
    return stack[0], storages


def _global(name: str) -> _Global:
    if name not in STORAGES and name not in (DICT, SIZE, TENSOR, PARAMETER):
        dotted = name.replace(" ", ".", 1)[:120]
        raise ValueError(f"it wants to import {dotted!r}, which is not on the list")
    return _Global(name)


def _extended(items: list[object]) -> object:
    target, *values = items
    if not isinstance(target, list):
        raise ValueError("its pickle appends to something that is not a list")
    target.extend(values)
    return target


def _updated(items: list[object]) -> object:
    target, *pairs = items
    if not isinstance(target, dict) or len(pairs) % 2:
        raise ValueError("its pickle sets items of something that is not a dict")
    if not all(type(key) in (str, int) for key in pairs[::2]):  # to hash nested tuples can take forever
        raise ValueError("a dict has keys other than strings and integers")
    target.update(zip(pairs[::2], pairs[1::2], strict=True))
    return target


def _built(items: list[object]) -> object:
    target, state = items
    if type(target) is not dict or type(state) is not dict or state.keys() - {"_metadata"}:
        raise ValueError("its pickle sets attributes other than the _metadata of a state dict")
    return target


def _stored(items: list[object]) -> object:
    """The storage of an id ("storage", type, key, device, size), in old files with a None at the end."""
    match items:
        case [("storage", _Global(kind), str(key), str(), int(size), *rest)] if rest in ([], [None]):
            if kind in STORAGES and key.isascii() and key.isdigit() and 0 <= size < 1 << 62:
                return Storage(key, STORAGES[kind], size)
    raise ValueError("its pickle refers to something that is not a storage")


def _called(items: list[object]) -> object:
    """The result of one of the four calls that torch.save writes, with the arguments that it writes."""
    match items:
        case [_Global(name), ()] if name == DICT:
            return {}
        case [_Global(name), (tuple(shape),)] if name == SIZE:
            return shape
        case [_Global(name), (_Tensor() as tensor, bool(), dict(hooks))] if name == PARAMETER and not hooks:
            return tensor
        case [_Global(name), (Storage(), int(), tuple(shape), tuple(), bool(), dict(hooks))] if not hooks:
            if name == TENSOR and len(shape) <= MOST_DIMENSIONS:
                return _Tensor()
    raise ValueError("its pickle calls something in a way that torch.save does not")


_ACTIONS: dict[str, Callable[[list[object]], object]] = {
    **dict.fromkeys(("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_TUPLE"), tuple),
    **dict.fromkeys(("APPEND", "APPENDS"), _extended),
    **dict.fromkeys(("SETITEM", "SETITEMS"), _updated),
    "EMPTY_LIST": lambda _: [],
    "EMPTY_DICT": lambda _: {},
    "BUILD": _built,
    "REDUCE": _called,
    "BINPERSID": _stored,
}
"""What becomes of the items that an opcode takes from the stack."""
_CONSTANTS: dict[str, Callable[[Any], object]] = {
    **dict.fromkeys(("NONE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE"), lambda x: x),
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
    "GLOBAL": _global,
}
"""What an opcode pushes, given the argument that stands in the file."""
