"""The reader of sentencepiece models takes what is well formed and refuses the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.errors import InputError
from longspan.formats.sentencepiece import Kind, Piece, read_model
from unit.text.tiny import field, piece, sentencepiece, varint

GOOD = sentencepiece([piece("<unk>", kind=2), piece("▁the", -1.5), piece("é", -2.25, kind=4)])


def test_pieces_are_read_in_order() -> None:
    model = read_model(GOOD)
    assert model.pieces == (
        Piece("<unk>", 0.0, Kind.UNKNOWN),
        Piece("▁the", -1.5, Kind.NORMAL),
        Piece("é", -2.25, Kind.USER),
    )
    assert model.charsmap == b""


def test_normalization_rules_are_kept_and_unknown_fields_skipped() -> None:
    later = (
        field(3, field(1, b"nfkc") + field(2, b"rules")) + field(99, 7) + varint(98 << 3 | 1) + b"8 bytes."
    )
    assert read_model(piece("a") + later).charsmap == b"rules"


@given(st.integers(0, len(GOOD) - 1))
def test_a_cut_file_is_an_error_or_a_shorter_model(end: int) -> None:
    try:
        found = read_model(GOOD[:end]).pieces
    except InputError:
        return
    assert found == read_model(GOOD).pieces[: len(found)]


@given(st.binary(max_size=80))
def test_noise_is_never_more_than_an_error(data: bytes) -> None:
    for content in (data, field(1, data), field(2, data), field(3, data)):
        try:
            read_model(content)
        except InputError:
            continue


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "holds no pieces"),
        (field(1, field(2, 0.5)), "a piece has no text"),
        (field(1, field(1, b"\xff")), "not UTF-8"),
        (field(1, 5), "a number is where text or a message should be"),
        (piece("a", float("nan")), "score of piece 'a' is nan"),
        (piece("a", float("inf")), "score of piece 'a' is inf"),
        (piece("a", kind=9), "unknown kind 9"),
        (b"\x0b", "unknown wire type 3"),
        (b"\xff" * 12, "more than 10 bytes"),
        (b"\x0a" + varint(2**40), "ends early, inside field 1"),
        (b"\x80", "ends early, inside a number"),
    ],
)
def test_malformed_models_say_why(data: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read_model(data)


def test_models_that_are_neither_unigram_nor_bpe_are_refused() -> None:
    with pytest.raises(InputError, match="must be a unigram or BPE model, but is 'of type 3'"):
        read_model(sentencepiece([piece("a")], algorithm=3))


def test_a_kind_that_is_text_is_refused() -> None:
    with pytest.raises(InputError, match="unknown kind b'3'"):
        read_model(field(1, field(1, b"a") + field(3, b"3")))
