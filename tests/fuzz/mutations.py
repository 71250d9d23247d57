"""Changes of bytes and of JSON values, drawn at random."""

import copy
import random
from collections.abc import Callable, Sequence
from typing import Any

NUMBERS = (
    0,
    1,
    2,
    127,
    128,
    255,
    256,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**62,
    2**63,
    2**64 - 1,
)
ODD: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 3, 511, 2**31, 2**63, -(2**63), 10**30, 0.0, -0.5, 1e-300, 1e308),
    *(
        "",
        " ",
        "a",
        "\0",
        "é",
        "\u202e",
        "\U0001f469\u200d\U0001f680",
        "a" * 300,
        "../x",
        "/etc/passwd",
        "default",
    ),
    *([], {}, [None], [[]], {"": 0}, {"content": 1}, [0] * 300),
)
MOST_PLACES = 5000


def mutated(data: bytes, draw: random.Random, words: Sequence[bytes] = (b"",)) -> bytes:
    """Bytes with one to eight changes; `words` mean something in their format."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        draw.choice(CHANGES)(changed, draw, words)
    return bytes(changed)


def _flip(data: bytearray, draw: random.Random, words: Sequence[bytes]) -> None:
    if data:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def _write(data: bytearray, draw: random.Random, words: Sequence[bytes]) -> None:
    place, size = _place(data, draw), draw.choice((1, 2, 4, 8))
    data[place : place + size] = (draw.choice(NUMBERS) % 256**size).to_bytes(
        size, draw.choice(("little", "big"))
    )


def _remove(data: bytearray, draw: random.Random, words: Sequence[bytes]) -> None:
    place = _place(data, draw)
    del data[place : place + _size(data, draw)]


def _repeat(data: bytearray, draw: random.Random, words: Sequence[bytes]) -> None:
    place = _place(data, draw)
    part = data[place : place + _size(data, draw)]
    data[place:place] = part * draw.choice((1, 2, min(1000, 1 + 100_000 // (len(part) + 1))))


def _move(data: bytearray, draw: random.Random, words: Sequence[bytes]) -> None:
    place, size = _place(data, draw), _size(data, draw)
    part = data[place : place + size]
    del data[place : place + size]
    other = _place(data, draw)
    data[other:other] = part


def _insert(data: bytearray, draw: random.Random, words: Sequence[bytes]) -> None:
    place = _place(data, draw)
    data[place:place] = draw.choice(words) * draw.choice((1, 1, 2, 1000))


def _cut(data: bytearray, draw: random.Random, words: Sequence[bytes]) -> None:
    del data[_place(data, draw) :]


def _noise(data: bytearray, draw: random.Random, words: Sequence[bytes]) -> None:
    place, size = _place(data, draw), _size(data, draw)
    data[place : place + size] = draw.randbytes(size)


CHANGES: tuple[Callable[[bytearray, random.Random, Sequence[bytes]], None], ...] = (
    *(_flip, _flip, _write, _write, _remove, _repeat, _move, _insert, _insert, _cut, _noise),
)


def _place(data: bytearray, draw: random.Random) -> int:
    return draw.randrange(len(data) + 1)


def _size(data: bytearray, draw: random.Random) -> int:
    return draw.randrange(1, 2 + min(len(data), draw.choice((4, 64, 4096))))


def mutated_json(value: Any, draw: random.Random) -> Any:
    """A JSON value with one to four changes of what it holds."""
    box = [value]
    for _ in range(draw.choice((1, 1, 2, 4))):
        places = list(_places(box))
        holder, key = draw.choice(places)
        _change(holder, key, draw)
    return box[0]


def _places(value: Any) -> Sequence[tuple[Any, Any]]:
    """Every (container, key) in it, up to MOST_PLACES."""
    found: list[tuple[Any, Any]] = []
    left = [value]
    while left and len(found) < MOST_PLACES:
        holder = left.pop()
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            found.append((holder, key))
            if isinstance(holder[key], dict | list):
                left.append(holder[key])
    return found


def _change(holder: Any, key: Any, draw: random.Random) -> None:
    change = draw.randrange(6)
    if change == 0 and isinstance(holder, dict):
        del holder[key]
    elif change == 1 and isinstance(holder, dict):
        holder[draw.choice(("", "x", "type", "auto_map", key.upper()))] = holder.pop(key)
    elif change == 2 and isinstance(holder[key], int) and not isinstance(holder[key], bool):
        holder[key] = draw.choice((holder[key] + 1, holder[key] - 1, -holder[key], 2 * holder[key], *NUMBERS))
    elif change == 3:
        holder[key] = [copy.deepcopy(holder[key]) for _ in range(draw.choice((0, 1, 2, 20)))]
    elif change == 4 and isinstance(holder[key], str):
        holder[key] = holder[key] * draw.choice((0, 2, 1000)) + draw.choice(
            ("", "\0", "\n", "\ud800", "\uffff")
        )
    else:
        holder[key] = copy.deepcopy(draw.choice(ODD))
