"""Tokenizer files are untrusted: the library's errors become ours, ids and regexes are checked."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tokenizers import Tokenizer

from longspan.errors import InputError, LongspanError, bad

PROBES = ("a", "A", "1", " ", "\n", "!", "'", "é", "中", "a ", "a1", "A.", "1,")
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
