"""What a pickle of tensors says, found out without unpickling it.

The opcodes are walked on a stack of inert values. Nothing is imported or called: an allowed name stands for
itself, an allowed call becomes a description of its result, and everything else is refused.
"""

import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, BinaryIO

import torch

MOST_BYTES = 8 << 20
"""The longest pickle that is looked at; the data of the tensors lie elsewhere."""
MOST_STEPS = 200_000
"""Opcodes walked at most: some six thousand tensors."""

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


@dataclass(frozen=True)
class Storage:
    """`size` elements kept in the file under `key`."""

    key: str
    dtype: torch.dtype
    size: int

    @property
    def bytes(self) -> int:
        return self.size * self.dtype.itemsize


@dataclass(frozen=True)
class Described:
    """A tensor: a view that lies inside its storage and shows no element twice."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


@dataclass(frozen=True)
class _Name:
    """An allowed global; what it stands for is never looked up."""

    name: str


class _Ordered(dict[object, object]):
    """Stands for an OrderedDict, the one thing that may be given a state: its `_metadata`."""


def read(stream: BinaryIO) -> tuple[object, dict[str, Storage]]:
    """The value of the pickle that begins here, and its storages; ValueError says what is not allowed."""
    walk = _Walk()
    try:
        for step, (opcode, argument, _) in enumerate(pickletools.genops(stream)):
            if (step == 0) != (opcode.name == "PROTO"):
                raise ValueError("it does not begin with its protocol, or names it twice")
            if step >= MOST_STEPS:
                raise ValueError(f"its pickle takes more than {MOST_STEPS:,} steps")
            act = _ACTIONS.get(opcode.name)
            if act is None:
                raise ValueError(f"its pickle uses {opcode.name}, which plain weights do not need")
            act(walk, argument)
    except (IndexError, KeyError):
        raise ValueError("its pickle is malformed") from None
    if walk.marked or len(walk.stack) != 1:
        raise ValueError("its pickle leaves something on the stack")
    return walk.stack[0], walk.storages


class _Walk:
    """The state of an unpickler, with descriptions where objects would be."""

    def __init__(self) -> None:
        self.stack: list[object] = []
        self.marked: list[list[object]] = []
        self.memo: dict[int, object] = {}
        self.storages: dict[str, Storage] = {}

    def protocol(self, number: int) -> None:
        if number != 2:
            raise ValueError(f"its pickle protocol is {number}; torch.save writes 2")

    def push(self, value: object) -> None:
        self.stack.append(value)

    def name(self, name: str) -> None:
        if name not in STORAGES and name not in _CALLS:
            dotted = name.replace(" ", ".", 1)[:120]
            raise ValueError(f"it wants to import {dotted!r}, which is not on the list")
        self.push(_Name(name))

    def put(self, place: int) -> None:
        self.memo[place] = self.stack[-1]

    def get(self, place: int) -> None:
        self.push(self.memo[place])

    def mark(self, _: None) -> None:
        self.marked.append(self.stack)
        self.stack = []

    def since_mark(self) -> list[object]:
        items, self.stack = self.stack, self.marked.pop()
        return items

    def tuple_of(self, count: int) -> None:
        if len(self.stack) < count:
            raise IndexError
        self.stack[-count:] = [tuple(self.stack[-count:])]

    def append(self, items: list[object]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise ValueError("its pickle appends to something that is not a list")
        target.extend(items)

    def set_items(self, items: list[object]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise ValueError("its pickle sets items of something that is not a dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if type(key) not in (str, int):  # hashing nested tuples can take for ever
                raise ValueError("a dict has keys other than words and numbers")
            target[key] = value

    def call(self, _: None) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        if type(function) is not _Name or function.name not in _CALLS or type(arguments) is not tuple:
            raise ValueError("its pickle calls something that is not a function on the list")
        self.push(_CALLS[function.name](arguments))

    def build(self, _: None) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if type(target) is not _Ordered or type(state) is not dict or set(state) - {"_metadata"}:
            raise ValueError("its pickle sets attributes other than the _metadata of a state dict")

    def storage(self, _: None) -> None:
        """The persistent id ("storage", type, key, device, size), in old files with a None behind it."""
        match self.stack.pop():
            case ("storage", _Name(name=kind), str(key), str(), int(size), *rest) if rest in ([], [None]):
                if kind in STORAGES and key.isascii() and key.isdigit():
                    found = Storage(key, STORAGES[kind], _sizes((size,))[0])
                    if self.storages.setdefault(key, found) != found:
                        raise ValueError(f"the storage {key} is described in two ways")
                    self.push(found)
                    return
        raise ValueError("its pickle refers to something that is not a storage")


def _ordered_dict(arguments: tuple[object, ...]) -> object:
    if arguments:
        raise ValueError("an OrderedDict is made in a way that torch.save does not use")
    return _Ordered()


def _sizes(value: object) -> tuple[int, ...]:
    if type(value) is not tuple or len(value) > 64:
        raise ValueError("the shape of a tensor is not a tuple of numbers")
    if not all(type(number) is int and 0 <= number < 1 << 62 for number in value):
        raise ValueError("the shape or stride of a tensor is negative, too large or not a number")
    return value


def _size(arguments: tuple[object, ...]) -> object:
    if len(arguments) != 1:
        raise ValueError("the shape of a tensor is not a tuple of numbers")
    return _sizes(arguments[0])


def _tensor(arguments: tuple[object, ...]) -> object:
    match arguments:
        case (Storage() as storage, offset, shape, stride, bool(), _Ordered() as hooks) if not hooks:
            shape, stride, (offset,) = _sizes(shape), _sizes(stride), _sizes((offset,))
        case _:
            raise ValueError("a tensor is made in a way that torch.save does not use")
    if len(shape) != len(stride):
        raise ValueError(f"a tensor has {len(shape)} sizes and {len(stride)} strides")
    reach = sum((size - 1) * step for size, step in zip(shape, stride, strict=True)) + 1 if prod(shape) else 0
    if offset + reach > storage.size:
        raise ValueError(f"a tensor reaches element {offset + reach:,} of a storage of {storage.size:,}")
    if prod(shape) > storage.size:
        raise ValueError("a tensor shows elements of its storage more than once")
    return Described(storage, offset, shape, stride)


def _parameter(arguments: tuple[object, ...]) -> object:
    match arguments:
        case (Described() as tensor, bool(), _Ordered() as hooks) if not hooks:
            return tensor
    raise ValueError("a parameter is made in a way that torch.save does not use")


_CALLS: dict[str, Callable[[tuple[object, ...]], object]] = {
    "collections OrderedDict": _ordered_dict,
    "torch._utils _rebuild_tensor_v2": _tensor,
    "torch._utils _rebuild_parameter": _parameter,
    "torch Size": _size,
}


def _set_item(walk: _Walk, _: None) -> None:
    value, key = walk.stack.pop(), walk.stack.pop()
    walk.set_items([key, value])


_ACTIONS: dict[str, Callable[[_Walk, Any], object]] = {
    "PROTO": _Walk.protocol,
    "STOP": lambda walk, _: None,
    "GLOBAL": _Walk.name,
    "REDUCE": _Walk.call,
    "BUILD": _Walk.build,
    "BINPERSID": _Walk.storage,
    "MARK": _Walk.mark,
    "TUPLE": lambda walk, _: walk.push(tuple(walk.since_mark())),
    "TUPLE1": lambda walk, _: walk.tuple_of(1),
    "TUPLE2": lambda walk, _: walk.tuple_of(2),
    "TUPLE3": lambda walk, _: walk.tuple_of(3),
    "EMPTY_TUPLE": lambda walk, _: walk.push(()),
    "EMPTY_LIST": lambda walk, _: walk.push([]),
    "EMPTY_DICT": lambda walk, _: walk.push({}),
    "APPEND": lambda walk, _: walk.append([walk.stack.pop()]),
    "APPENDS": lambda walk, _: walk.append(walk.since_mark()),
    "SETITEM": _set_item,
    "SETITEMS": lambda walk, _: walk.set_items(walk.since_mark()),
    "NEWTRUE": lambda walk, _: walk.push(True),
    "NEWFALSE": lambda walk, _: walk.push(False),
    **dict.fromkeys(("NONE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE"), _Walk.push),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), _Walk.put),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Walk.get),
}
