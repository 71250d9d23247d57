"""Pieces of a text that is being written make up the text, character by whole character."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders

from longspan.text.stream import TextStream
from longspan.text.tokenizer import Tokenizer
from unit.text import tiny

FAMILIES = (*tiny.FAMILIES, "pegasus")


@cache
def tokenizer(family: str) -> Tokenizer:
    with TemporaryDirectory() as folder:
        return Tokenizer.from_folder(tiny.write(family, Path(folder)))


def pieces(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    stream = TextStream(tokenizer)
    return [*(stream.add(token) for token in ids), stream.end()]


@given(st.sampled_from(FAMILIES), st.data())
def test_any_tokens_come_as_the_text_they_decode_to(family: str, data: st.DataObject) -> None:
    known = tokenizer(family)
    ids = data.draw(st.lists(st.integers(0, known.vocab_size - 1), max_size=40))
    assert "".join(pieces(known, ids)) == known.decode(ids, special=False)


@given(st.text(max_size=12), st.data())
def test_a_character_comes_whole(text: str, data: st.DataObject) -> None:
    known = tokenizer("roberta")  # of bytes, few of them joined: most characters are several tokens
    ids = known.encode(text + "👩\u200d👩é").ids.tolist()
    place = data.draw(st.integers(0, len(ids)))
    ids[place:place] = [known.eos]  # a special token in the middle of a character is passed over
    found = pieces(known, ids)
    assert "".join(found) == text + "👩\u200d👩é"
    assert not any("\ufffd" in piece for piece in found) or "\ufffd" in text


def test_words_come_as_soon_as_they_are_known() -> None:
    known = tokenizer("pegasus")
    ids = known.encode("the cat sat").ids.tolist()
    assert pieces(known, ids) == ["the", " cat", " sat", "", ""]


def test_bytes_that_never_make_a_character_come_at_the_end() -> None:
    known = tokenizer("roberta")
    ids = [*known.encode("cat").ids[1:-1].tolist(), *known.encode("👩").ids[1:2].tolist()]
    found = pieces(known, ids)
    assert found[-1] == "\ufffd"
    assert "".join(found) == known.decode(ids, special=False) == "cat\ufffd"


def test_what_another_decoder_says_is_told_at_the_end() -> None:
    known = Tokenizer.from_json(tokenizer("pegasus").to_json())
    known._backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse()])
    ids = known.encode("the cat").ids.tolist()
    assert pieces(known, ids) == ["", "", "", known.decode(ids, special=False)]


@pytest.mark.parametrize("family", FAMILIES)
def test_no_tokens_are_no_text(family: str) -> None:
    assert pieces(tokenizer(family), []) == [""]
