"""Encodings: the tokens of a text, and where each stands in it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import tokenizers

from longspan.shapes import IntArray
from longspan.text.pieces import Tokens, is_long, tokens

Input = str | tuple[str, str]
TOGETHER = 1 << 17
"""Characters of short texts that are tokenized together."""


@dataclass(frozen=True, eq=False)
class Encoding:
    """The tokens of one text, or of a text and its pair, special tokens included."""

    ids: IntArray
    types: IntArray
    "Token types: 0, or 1 in the second part where the model tells the parts apart."
    offsets: IntArray
    "(n, 2): where each token begins and ends, in characters of its string; 0, 0 if special."
    source: IntArray
    "Which string: 0 the text, 1 the pair, -1 neither: a special token."
    texts: tuple[str, ...] = ()
    "The text, and its pair if there is one."

    def __post_init__(self) -> None:
        for column in (self.ids, self.types, self.offsets, self.source):
            column.setflags(write=False)

    def __len__(self) -> int:
        return len(self.ids)


def encode(
    backend: tokenizers.Tokenizer, place: re.Pattern[str] | None, texts: Sequence[Input]
) -> list[Encoding]:
    """Encodings in order: short texts many at once, long ones in pieces, so that memory stays small."""
    encodings: list[Encoding] = []
    short: list[Input] = []
    size = 0

    def flush() -> None:
        raw = backend.encode_batch(short)
        encodings.extend(_encoding(each, text) for each, text in zip(raw, short, strict=True))
        short.clear()

    for text in texts:
        parts = (text,) if isinstance(text, str) else text
        length = sum(map(len, parts))
        if place is not None and is_long(length):
            flush()
            encodings.append(_long(backend, place, parts))
            continue
        size = size + length if short else length
        short.append(text)
        if size >= TOGETHER:
            flush()
    flush()
    return encodings


def _long(backend: tokenizers.Tokenizer, place: re.Pattern[str], texts: tuple[str, ...]) -> Encoding:
    """The tokens of a text, or of a text and its pair, with the special tokens that stand around any text."""
    frame = backend.encode("a", "a" if len(texts) > 1 else None)
    sources = [-1 if source is None else source for source in frame.sequence_ids]
    as_given = texts[0] if len(texts) == 1 else (texts[0], texts[1])
    if not {*range(len(texts))} <= {*sources}:  # an "a" is nothing to this tokenizer
        return _encoding(backend.encode(texts[0], texts[1] if len(texts) > 1 else None), as_given)
    found = [tokens(backend, text, place) for text in texts]
    special = [Tokens([np.array([index], np.int32)], [np.zeros((1, 2), np.int32)]) for index in frame.ids]
    parts = [
        (own, kind, found[own] if own >= 0 else special[n])
        for n, (own, kind) in enumerate(zip(sources, frame.type_ids, strict=True))
        if own < 0 or own not in sources[:n]
    ]
    return Encoding(
        np.concatenate([one for *_, part in parts for one in part.ids], dtype=np.int64),
        np.concatenate([np.full(part.size, kind, np.int64) for _, kind, part in parts]),
        np.concatenate([one for *_, part in parts for one in part.offsets], dtype=np.int64),
        np.concatenate([np.full(part.size, own, np.int8) for own, _, part in parts]),
        texts,
    )


def _encoding(raw: tokenizers.Encoding, text: Input) -> Encoding:
    ids = np.asarray(raw.ids, np.int64)
    source = np.asarray([-1 if part is None else part for part in raw.sequence_ids], np.int8)
    offsets = np.asarray(raw.offsets, np.int64).reshape(-1, 2)
    texts = (text,) if isinstance(text, str) else text
    return Encoding(ids, np.asarray(raw.type_ids, np.int64), offsets, source, texts)
