"""Tiny tokenizers of every family, written as the files that model folders hold."""

import json
import struct
from collections.abc import Iterable
from pathlib import Path

from tokenizers import pre_tokenizers

WORDS = ["the", "cat", "sat", "on", "a", "mat", "what", "who", "is", "it"]
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,?!'-[]<>/"
FAMILIES = ("roberta", "bert", "bigbird", "xlm-roberta")


def varint(number: int) -> bytes:
    more, last = number >> 7, number & 127
    return bytes([last | 128]) + varint(more) if more else bytes([last])


def field(number: int, value: int | float | bytes) -> bytes:
    """One field of a protobuf message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def piece(text: str, score: float = 0.0, kind: int = 1) -> bytes:
    return field(1, field(1, text.encode()) + field(2, score) + field(3, kind))


def sentencepiece(pieces: Iterable[bytes], algorithm: int = 1) -> bytes:
    return b"".join(pieces) + field(2, field(3, algorithm) + field(40, 0)) + field(3, field(1, b"identity"))


def bigbird_pieces() -> list[bytes]:
    controls = [piece("<pad>", kind=3), piece("</s>", kind=3), piece("<s>", kind=4)]
    frame = [piece(text, kind=4) for text in ("[CLS]", "[SEP]", "[MASK]", "<t>")]
    words = [piece("▁" + word, -2.0 - i / 8) for i, word in enumerate(WORDS)]
    letters = [piece(letter, -9.0 - i / 8) for i, letter in enumerate("▁" + LETTERS)]
    return [*controls, *frame, piece("<unk>", kind=2), *words, *letters]


def pegasus_pieces() -> list[bytes]:
    first = [piece("<pad>", kind=3), piece("</s>", kind=3), piece("<unk>", kind=2), piece("<n>", kind=4)]
    return [*first, *bigbird_pieces()[8:]]


def write(family: str, folder: Path) -> Path:
    """The vocabulary files of a tiny tokenizer."""
    if family == "roberta":
        write_roberta(folder)
    elif family == "bert":
        continued = [f"##{letter}" for letter in LETTERS]
        tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *LETTERS[1:], *continued]
        (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    elif family == "bigbird":
        (folder / "spiece.model").write_bytes(sentencepiece(bigbird_pieces()))
    elif family == "pegasus":
        (folder / "spiece.model").write_bytes(sentencepiece(pegasus_pieces()))
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PegasusTokenizer"}')
    else:
        pieces = [piece("<unk>", kind=2), piece("<s>", kind=3), piece("</s>", kind=3)]
        (folder / "sentencepiece.bpe.model").write_bytes(sentencepiece([*pieces, *bigbird_pieces()[8:]]))
    return folder


def write_roberta(folder: Path) -> None:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = ["t h", "th e", "Ġ the", "c a", "ca t", "Ġ cat", "Ã ©", "Ġ Ġ", "ð Ł"]
    joined = [merge.replace(" ", "") for merge in merges]
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *alphabet, *joined, "<mask>"]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n")
