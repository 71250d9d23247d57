"""CRC-32C, by which TensorFlow guards its files: many stretches of the data side by side, then joined."""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.unsignedinteger[Any]]

_POLYNOMIAL = 0x82F63B78
_ALL = 0xFFFFFFFF
_LANES, _STEP = 4096, 8
"""Stretches, and the bytes that each takes at once."""


def crc32c(data: bytes | memoryview) -> int:
    """The checksum of some bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    steps = len(data) // (_LANES * _STEP)
    state, done = _ALL, steps * _LANES * _STEP
    if steps:
        words = np.frombuffer(data, "<u8", steps * _LANES).reshape(_LANES, steps)
        lanes = np.zeros(_LANES, np.uint32)
        lanes[0] = state  # the others begin at 0, which the sum, being linear, allows
        pairs = _pairs()
        for step in range(steps):
            halves = (words[:, step] ^ lanes).view("<u2").reshape(_LANES, 4)
            lanes = pairs[0].take(halves[:, 0])
            for table, half in zip(pairs[1:], halves.T[1:], strict=True):
                lanes ^= table.take(half)
        state = _joined(lanes, steps * _STEP)
    table = _bytes()[0].tolist() if done < len(data) else []
    for byte in data[done:]:
        state = table[(state ^ byte) & 0xFF] ^ (state >> 8)
    return state ^ _ALL


def unmasked(stored: int) -> int:
    """A checksum as TensorFlow stores it, turned and shifted, back to what it was.

    >>> hex(unmasked(0xA282EAD8 + 0x12345678 & 0xFFFFFFFF))
    '0x2b3c091a'
    """
    turned = (stored - 0xA282EAD8) & _ALL
    return ((turned >> 17) | (turned << 15)) & _ALL


@cache
def _bytes() -> Words:
    """(8, 256): what a byte does to the sum once 0, 1, ... 7 more bytes have passed."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1).astype(np.uint32)
    tables = [table]
    for _ in range(_STEP - 1):
        tables.append(table[tables[-1] & 0xFF] ^ (tables[-1] >> 8))
    return np.stack(tables)


@cache
def _pairs() -> tuple[Words, ...]:
    """The same for the four pairs of bytes of a word, 65,536 entries each."""
    tables, pair = _bytes(), np.arange(65536)
    return tuple(tables[7 - 2 * j][pair & 0xFF] ^ tables[6 - 2 * j][pair >> 8] for j in range(4))


def _joined(lanes: Words, size: int) -> int:
    """The sum of stretches of `size` bytes each: neighbours first, then neighbours of these, and so on."""
    passing = _passing(size)
    while len(lanes) > 1:
        lanes = _applied(passing, lanes[::2]) ^ lanes[1::2]
        passing = _applied(passing, passing)
    return int(lanes[0])


def _passing(size: int) -> Words:
    """(32,): what `size` bytes of 0 make of each bit of a sum."""
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    one, found = _bytes()[0][bits & 0xFF] ^ (bits >> 8), bits
    while size:
        if size & 1:
            found = _applied(one, found)
        one, size = _applied(one, one), size >> 1
    return found


def _applied(images: Words, sums: Words) -> Words:
    """Sums after a linear step, given what it makes of each bit."""
    out = np.zeros_like(sums)
    for bit, image in enumerate(images):
        out ^= np.where(sums >> np.uint32(bit) & 1, image, np.uint32(0))
    return out
