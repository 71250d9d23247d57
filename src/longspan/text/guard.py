"""Tokenizer files are untrusted: the library's errors become ours, ids and regexes are checked."""

import base64
import binascii
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tokenizers import Tokenizer

from longspan.errors import InputError, LongspanError, bad

PROBES = ("a", "A", "1", " ", "\n", "!", "'", "é", "中", "a ", "a1", "A.", "1,")
MOST_ADDED = 1 << 20
"""Characters of all added tokens together: the library's automaton takes 250 bytes and 5 µs for each."""
MOST_UNIGRAM = 1 << 22
"""Characters of all pieces of a unigram vocabulary: the library's tree takes 340 bytes for each."""
LONGEST_WORD = 200
"""Characters of a word that WordPiece cuts, in cubic time; 100 and 200 are usual."""
MOST_PARTS, MOST_GROWTH = 64, 1024
"""Steps of a normalizer or decoder, and how many times longer they make a text; real ones stay below 80."""
SLOWEST_PROBE = 1.0  # seconds of CPU time: a busy machine makes no tokenizer slow


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """Turn whatever the library raises, panics of its Rust code included, into an InputError."""
    try:
        yield
    except LongspanError:
        raise
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise InputError(f"{what} failed in the tokenizers library: {error}") from None
        raise


def check_ids(backend: Tokenizer, vocab_size: int | None) -> None:
    """Check that every id of the tokenizer has a token, and a row among the model's `vocab_size`."""
    vocabulary = backend.get_vocab(with_added_tokens=True)
    if not vocabulary:
        raise InputError("The tokenizer must have a vocabulary, but it is empty.")
    with guarded("Framing an empty text"):
        framed = {*backend.encode("").ids, *backend.encode("", "").ids}
    unknown = framed.difference(vocabulary.values())
    if unknown:
        raise bad("tokenizer", "framing texts with tokens of its vocabulary", min(unknown))
    if vocab_size is not None and max(vocabulary.values()) >= vocab_size:
        token = max(vocabulary, key=vocabulary.__getitem__)
        repair = (
            f"Token {token!r} is beyond the model's vocabulary: tokenizer and model do not belong together."
        )
        raise bad("tokenizer", f"giving ids below {vocab_size}", vocabulary[token], repair)


def check_regexes(backend: Tokenizer) -> None:
    """Refuse regexes that are slow on plain runs of characters: no proof, but it costs milliseconds.

    The engine itself gives up after ten million steps from one place, so every trial ends.
    """
    parts = [part.__getstate__() for part in (backend.normalizer, backend.pre_tokenizer) if part is not None]
    if not any(b'"Regex"' in part for part in parts):
        return
    for length in (32, 256, 2048):
        for probe in PROBES:
            started = time.thread_time()
            with guarded("A trial of the tokenizer's regexes"):
                backend.encode(probe * (length // len(probe)) + "~")
            seconds = time.thread_time() - started
            if seconds > SLOWEST_PROBE:
                raise bad("tokenizer", "made of fast regexes", f"{seconds:.1f} s for {length} characters")


def check_added(tokens: Iterable[str]) -> None:
    """Refuse more added tokens than can be loaded in seconds."""
    total = sum(map(len, tokens))
    if total > MOST_ADDED:
        raise bad("added tokens", f"of at most {MOST_ADDED:,} characters together", f"{total:,}")


def check_pieces(pieces: Iterable[str]) -> None:
    """Refuse a unigram vocabulary that would fill the memory."""
    total = sum(map(len, pieces))
    if total > MOST_UNIGRAM:
        raise bad("vocabulary", f"of at most {MOST_UNIGRAM:,} characters together", f"{total:,}")


def check_json(text: str) -> None:
    """Check what a tokenizer.json holds before the library makes anything of it, which finds other errors."""
    if len(text) <= MOST_ADDED:
        return  # then none of its parts is longer
    try:
        value = json.loads(text)
        added = [token["content"] for token in value.get("added_tokens") or []]
        vocabulary = value["model"]["vocab"]
        pieces = [piece for piece, _ in vocabulary] if isinstance(vocabulary, list) else []
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return
    check_added(filter(_is_text, added))
    check_pieces(filter(_is_text, pieces))


def check_parts(backend: Tokenizer) -> None:
    """Refuse normalizers and decoders that make a text much longer, and WordPiece for words of any length."""
    for name in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        part = getattr(backend, name)
        steps = [] if part is None else list(_steps(json.loads(part.__getstate__())))
        if len(steps) > MOST_PARTS:
            raise bad(name, f"made of at most {MOST_PARTS} steps", len(steps))
        growth = 1.0
        for step in steps:
            growth *= _growth(step)
        if growth > MOST_GROWTH:
            raise bad(name, f"making texts at most {MOST_GROWTH} times longer", f"{growth:.2g} times")
    longest = getattr(backend.model, "max_input_chars_per_word", 0)
    if longest > LONGEST_WORD:
        raise bad("max_input_chars_per_word", f"at most {LONGEST_WORD}", longest)


def _steps(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The steps of a part, of nested sequences too."""
    if part.get("type") != "Sequence":
        yield part
        return
    for inner in next((value for value in part.values() if isinstance(value, list)), []):
        yield from _steps(inner)


def _growth(step: dict[str, Any]) -> float:
    """How many times longer a step can make a text, at most."""
    match step.get("type"):
        case "Replace":
            content, pattern = len(step["content"]), step["pattern"].get("String")
            return max(1.0, content / len(pattern)) if pattern else 1.0 + content
        case "Precompiled":
            return float(max(map(len, _strings(step["precompiled_charsmap"])), default=1) or 1)
        case "ByteLevel":
            return 4.0 if len(step) == 1 else 1.0  # as a normalizer it has no options
        case "TemplateProcessing":
            return float(max(_texts(step["single"]), _texts(step["pair"]) / 2, 1))
    return 1.0


def _strings(charsmap: str) -> Sequence[bytes]:
    """What a sentencepiece charsmap replaces characters by: a tree with its size before it, then strings."""
    try:
        data = base64.b64decode(charsmap)
    except binascii.Error:
        return []
    return data[4 + int.from_bytes(data[:4], "little") :].split(b"\0")


def _texts(template: list[dict[str, Any]]) -> int:
    """How often a template repeats texts."""
    return sum("Sequence" in piece for piece in template)


def _is_text(value: object) -> bool:
    return isinstance(value, str)
