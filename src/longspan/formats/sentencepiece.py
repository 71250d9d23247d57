"""SentencePiece model files, read strictly: only what a tokenizer needs."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from longspan.errors import InputError, bad
from longspan.formats.protobuf import Malformed, fields

MOST_PIECES = 4_000_000


class Kind(IntEnum):
    """The type of a piece, as in sentencepiece_model.proto."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER = 4
    UNUSED = 5
    BYTE = 6


KINDS = frozenset(Kind)


@dataclass(frozen=True)
class Piece:
    text: str
    score: float
    kind: Kind


@dataclass(frozen=True)
class SentencePieceModel:
    """The vocabulary and the normalization rules of a model file."""

    pieces: tuple[Piece, ...]
    charsmap: bytes
    "Normalization rules as SentencePiece compiles them; empty for none."


def read_model(data: bytes) -> SentencePieceModel:
    """Parse the bytes of a .model file; an error says what is wrong with them."""
    pieces: list[Piece] = []
    charsmap, algorithm = b"", 1
    for field, value in _fields(data):
        if field == 1:
            pieces.append(_piece(_message(value)))
            if len(pieces) > MOST_PIECES:
                raise bad("sentencepiece model", f"of at most {MOST_PIECES} pieces", "longer")
        elif field == 2:
            algorithm = next((n for f, n in _fields(_message(value)) if f == 3 and isinstance(n, int)), 1)
        elif field == 3:
            charsmap = next((_message(b) for f, b in _fields(_message(value)) if f == 2), b"")
    if not pieces:
        raise _broken("it holds no pieces")
    if algorithm not in (1, 2):  # transformers reads both kinds as unigram models, and so do we
        raise bad("sentencepiece model", "a unigram or BPE model", f"of type {algorithm}")
    return SentencePieceModel(tuple(pieces), charsmap)


def _piece(data: bytes) -> Piece:
    text: str | None = None
    score, kind = 0.0, Kind.NORMAL
    for field, value in _fields(data):
        if field == 1:
            try:
                text = _message(value).decode()
            except UnicodeDecodeError:
                raise _broken("a piece is not UTF-8") from None
        elif field == 2 and isinstance(value, bytes) and len(value) == 4:
            (score,) = struct.unpack("<f", value)
        elif field == 3:
            if not isinstance(value, int) or value not in KINDS:
                raise _broken(f"a piece is of unknown kind {value!r}")
            kind = Kind(value)
    if text is None:
        raise _broken("a piece has no text")
    if score - score != 0:  # NaN or infinite
        raise _broken(f"the score of piece {text!r} is {score}")
    return Piece(text, score, kind)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    try:
        yield from fields(data)
    except Malformed as error:
        raise _broken(str(error)) from None


def _message(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise _broken("a number is where text or a message should be")
    return value


def _broken(reason: str) -> InputError:
    return InputError(f"The SentencePiece model cannot be read: {reason}. Download or copy the file again.")
