"""Pegasus' tokenizer gives the ids of transformers, and that of BigBird-Pegasus those of its file."""

import json
from pathlib import Path
from typing import Any

import pytest

from longspan.errors import InputError
from longspan.formats.sentencepiece import read_model
from longspan.text.tokenizer import Tokenizer
from unit.text import tiny
from unit.text.test_tokenizer import PAIRS, TEXTS

MORE = (*TEXTS, "the\n\ncat\tsat \n on", "a <mask_1> or <mask_2> or <unk_7> </s>", "x<n>the cat")


def configured(folder: Path, **config: Any) -> Tokenizer:
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PegasusTokenizer"} | config)
    )
    return Tokenizer.from_folder(folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny.write("pegasus", tmp_path)


def test_ids_and_offsets_are_those_of_transformers(folder: Path) -> None:
    transformers = pytest.importorskip("transformers")
    pieces = read_model((folder / "spiece.model").read_bytes()).pieces
    first = [(name, 0.0) for name in ("<pad>", "</s>", "<mask_1>", "<mask_2>")]
    spare = [(f"<unk_{i}>", -100.0) for i in range(2, 103)]
    rest = [(piece.text, piece.score) for piece in pieces[2:]]
    theirs = transformers.PegasusTokenizer(vocab=[*first, *spare, *rest])
    ours = Tokenizer.from_folder(folder)
    single = theirs(list(MORE), return_offsets_mapping=True)
    pairs = theirs([a for a, _ in PAIRS], [b for _, b in PAIRS], return_offsets_mapping=True)
    expected = [
        (ids, [list(place) for place in offsets])
        for answer in (single, pairs)
        for ids, offsets in zip(answer["input_ids"], answer["offset_mapping"], strict=True)
    ]
    found = ours.promoting.encode_many([*MORE, *PAIRS])
    assert [(e.ids.tolist(), e.offsets.tolist()) for e in found] == expected
    assert ours.vocab_size == len(theirs)
    for ids, _ in expected:
        assert ours.decode(ids, special=False) == theirs.decode(ids, skip_special_tokens=True)
    assert ours.special_ids == set(theirs.all_special_ids)


def test_a_text_gets_an_end_and_nothing_else(folder: Path) -> None:
    tokenizer = Tokenizer.from_folder(folder)
    assert (tokenizer.pad, tokenizer.eos, tokenizer.mask, tokenizer.unk) == (0, 1, 3, 105)
    assert tokenizer.encode("").ids.tolist() == [1]
    assert tokenizer.tokens(tokenizer.encode("the cat").ids) == ["▁the", "▁cat", "</s>"]
    assert tokenizer.tokens(tokenizer.encode("the", "cat").ids) == ["▁the", "▁cat", "</s>"]
    assert tokenizer.id_of("<mask_1>") == 2
    assert tokenizer.id_of("<unk_102>") == 104


@pytest.mark.parametrize("text", ["</s>", "<pad>", "<mask_1>", "<mask_2>", "<unk_2>", "<unk_102>"])
def test_text_never_becomes_a_special_token(folder: Path, text: str) -> None:
    tokenizer = Tokenizer.from_folder(folder)
    encoding = tokenizer.encode(f"the {text} cat")
    inside = set(encoding.ids[encoding.source >= 0].tolist()) - {tokenizer.unk}
    assert not inside & tokenizer.special_ids


def test_masks_keep_their_ids_where_a_folder_names_them(folder: Path) -> None:
    named = configured(folder, mask_token="<mask_2>", mask_token_sent={"content": "<mask_1>"})
    assert (named.id_of("<mask_1>"), named.mask) == (2, 3)
    without = configured(folder, mask_token_sent=None)
    assert (without.mask, without.unk) == (2, 104)


@pytest.mark.parametrize("told", ["by its offset", "by the model beside it"])
def test_ids_of_bigbirds_are_those_of_the_file(folder: Path, told: str) -> None:
    pieces = read_model((folder / "spiece.model").read_bytes()).pieces
    if told == "by its offset":
        tokenizer = configured(folder, offset=0, mask_token_sent=None)
    else:
        (folder / "config.json").write_text('{"model_type": "bigbird_pegasus"}')
        (folder / "tokenizer_config.json").unlink()
        tokenizer = Tokenizer.from_folder(folder)
    assert tokenizer.tokens(range(len(pieces))) == [piece.text for piece in pieces]
    assert tokenizer.encode("the cat").ids[-1] == tokenizer.eos == 1


def test_what_is_saved_is_the_same_tokenizer(folder: Path, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    ours = Tokenizer.from_folder(folder)
    ours.save(tmp_path / "saved")
    (tmp_path / "saved" / "config.json").write_text('{"model_type": "bigbird_pegasus"}')
    again = Tokenizer.from_folder(tmp_path / "saved")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    for text in MORE:
        assert again.encode(text).ids.tolist() == ours.encode(text).ids.tolist()
        assert theirs(text)["input_ids"] == ours.promoting.encode(text).ids.tolist()
    assert again.special_ids == ours.special_ids


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"offset": -1}, "`offset` must be at least 0"),
        ({"offset": "103"}, "`offset` must be a whole number"),
        ({"mask_token_sent": 7}, "`mask_token_sent` must be a string or null"),
        ({"unk_token": "<none>"}, "a vocabulary with <none>"),
    ],
)
def test_what_a_folder_says_is_checked(folder: Path, config: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        configured(folder, **config)
