"""Offsets are places in the very string that was given, whatever Unicode it holds."""

from functools import partial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from longspan.text.encoding import Encoding
from longspan.text.tokenizer import Tokenizer
from machine import assert_linear

ODD = (
    *(
        "e\u0301",
        "\u0301",
        "\u200d",
        "\ufeff",
        "\x00",
        "\ud800",
        "\udfff",
        "\u202e",
        "\ufdd0",
        "\u00a0",
        "\r\n",
    ),
    *("ﬁ", "½", "İ", "ß", "ǆ", "中", "한", "👩\u200d👩", "\U0001f600", "▁", "[CLS]", "</s>", "<mask>", "<t>"),
)


def texts() -> SearchStrategy[str]:
    anything = st.text(st.characters(exclude_categories=()), max_size=30)
    known = st.lists(st.sampled_from([*"the cat, sat?  \n", *ODD]), max_size=30).map("".join)
    return st.one_of(anything, known)


def check(encoding: Encoding, text: str, source: int) -> None:
    places = encoding.offsets[encoding.source == source]
    begin, end = places.T
    assert np.all(begin <= end)
    assert np.all(begin >= 0)
    assert np.all(end <= len(text))
    assert np.all(np.diff(begin) >= 0)
    assert np.all(np.diff(end) >= 0)


@given(text=texts(), pair=texts())
def test_offsets_lie_in_their_string_and_only_grow(tokenizer: Tokenizer, text: str, pair: str) -> None:
    for every in (tokenizer, tokenizer.promoting):
        encoding = every.encode(text, pair)
        check(encoding, text, 0)
        check(encoding, pair, 1)
        assert not encoding.offsets[encoding.source < 0].any()
        check(every.encode(text), text, 0)


@given(text=texts())
def test_every_visible_character_lies_in_a_token(family: str, tokenizer: Tokenizer, text: str) -> None:
    if family == "bert":  # BERT drops control characters, format characters and accents
        text = "".join(c if c.isalnum() and c.isascii() else " " for c in text)
    encoding = tokenizer.encode(text)
    covered = np.zeros(len(text) + 1, bool)
    for begin, end in encoding.offsets[encoding.source == 0]:
        covered[begin:end] = True
    missing = [c for c, seen in zip(text, covered, strict=False) if not seen and not c.isspace()]
    assert not missing


def test_a_slice_of_the_text_is_its_token(tokenizer: Tokenizer) -> None:
    text = "the cat, the mat  sat"
    encoding, checked = tokenizer.encode(text), 0
    for index, (begin, end) in zip(encoding.ids, encoding.offsets, strict=True):
        word = tokenizer.tokens([index])[0].lstrip("Ġ▁").removeprefix("##")
        if index not in tokenizer.special_ids and begin < end:
            assert text[begin:end].strip() == word
            checked += 1
    assert checked >= 6


def test_time_grows_with_length_alone(tokenizer: Tokenizer) -> None:
    for unit in ("a", "a  ", "e\u0301", " ", "the cat ", "[CLS]"):
        assert_linear(partial(_encode, tokenizer, unit), 20_000)


def _encode(tokenizer: Tokenizer, unit: str, length: int) -> Encoding:
    return tokenizer.encode(unit * (length // len(unit)))
