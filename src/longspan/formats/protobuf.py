"""Protocol buffers, as far as SentencePiece and TensorFlow files need them, read without trust."""

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class Malformed(ValueError):
    """A message that breaks the format; the text says how."""


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of one message in order: numbers as int, everything else as bytes.

    >>> list(fields(bytes([0x08, 0x07, 0x12, 0x01, 0x41])))
    [(1, 7), (2, b'A')]
    """
    at, end = 0, len(data)
    while at < end:
        key, at = varint(data, at)
        field, wire = key >> 3, key & 7
        if wire == VARINT:
            number, at = varint(data, at)
            yield field, number
            continue
        if wire == BYTES:
            size, at = varint(data, at)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise Malformed(f"unknown wire type {wire} at byte {at}")
        if size > end - at:
            raise Malformed(f"it ends early, inside field {field}")
        yield field, data[at : at + size]
        at += size


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at `at`, seven bits to a byte, and where it ends.

    >>> varint(bytes([0xAC, 0x02]), 0)
    (300, 2)
    """
    if at < len(data) and data[at] < 128:  # most numbers are small
        return data[at], at + 1
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise Malformed("it ends early, inside a number")
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
    raise Malformed(f"a number of more than 10 bytes before byte {at}")
