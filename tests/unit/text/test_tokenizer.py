"""Tokenizers give the ids that transformers gives, cut nothing, and take no orders from the text."""

import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longspan.errors import InputError
from longspan.formats.sentencepiece import read_model
from longspan.text.tokenizer import Tokenizer
from unit.text import tiny

TEXTS = (
    "the cat sat on a mat",
    "The  Cat,  sat?\n\n on it's café",
    "",
    " ",
    "what is <mask> or [MASK] </s> [SEP]  <t> <pad>[CLS]<s>x",
    "naïve 中文 e\u0301 \u200d👩\u200d👩 \x00 \ufeff ﬁ ½",
)
PAIRS = [(TEXTS[0], TEXTS[1]), (TEXTS[4], TEXTS[5]), ("", "the"), ("the", ""), ("", "")]


def from_transformers(family: str, folder: Path) -> Any:
    """The same files as transformers reads them."""
    transformers = pytest.importorskip("transformers")
    if family == "roberta":
        return transformers.RobertaTokenizer.from_pretrained(folder)
    if family == "bert":
        return transformers.BertTokenizer.from_pretrained(folder)
    path = next(folder.glob("*.model"))
    pieces = read_model(path.read_bytes()).pieces  # transformers would need sentencepiece and protobuf
    vocabulary = [(piece.text, piece.score) for piece in pieces]
    if family == "bigbird":
        added = [transformers.AddedToken(p.text, normalized=False) for p in pieces if p.kind in (3, 4)]
        return transformers.BigBirdTokenizer(vocab=vocabulary, extra_special_tokens=added)
    first = [(name, 0.0) for name in ("<s>", "<pad>", "</s>", "<unk>")]
    return transformers.XLMRobertaTokenizer(vocab=[*first, *vocabulary[3:], ("<mask>", 0.0)])


def test_ids_types_and_offsets_are_those_of_transformers(
    family: str, folder: Path, tokenizer: Tokenizer
) -> None:
    theirs = from_transformers(family, folder)
    asked = {"return_token_type_ids": True, "return_offsets_mapping": True}
    single = theirs(list(TEXTS), **asked)
    pairs = theirs([a for a, _ in PAIRS], [b for _, b in PAIRS], **asked)
    expected = [
        (ids, types, [list(place) for place in offsets])
        for answer in (single, pairs)
        for ids, types, offsets in zip(
            answer["input_ids"], answer["token_type_ids"], answer["offset_mapping"], strict=True
        )
    ]
    found = tokenizer.promoting.encode_many([*TEXTS, *PAIRS])
    assert [(e.ids.tolist(), e.types.tolist(), e.offsets.tolist()) for e in found] == expected
    roles = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
    assert [getattr(tokenizer, role) for role in roles] == [
        getattr(theirs, f"{role}_token_id") for role in roles
    ]


@pytest.mark.parametrize(("model_type", "name"), [("bart", "BartTokenizer"), ("led", "LEDTokenizer")])
def test_barts_and_leds_folders_are_read_as_transformers_reads_them(
    model_type: str, name: str, tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    tiny.write("roberta", tmp_path)
    for file, content in (
        ("config", {"model_type": model_type}),
        ("tokenizer_config", {"tokenizer_class": name}),
    ):
        (tmp_path / f"{file}.json").write_text(json.dumps(content))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ours = Tokenizer.from_folder(tmp_path)
    for text in TEXTS:
        ids = theirs(text)["input_ids"]
        assert ours.promoting.encode(text).ids.tolist() == ids
        assert ours.decode(ids, special=False) == theirs.decode(ids, skip_special_tokens=True)
    assert ours.special_ids == set(theirs.all_special_ids)


def test_one_and_many_give_the_same(tokenizer: Tokenizer) -> None:
    for text, many in zip(TEXTS, tokenizer.encode_many(TEXTS), strict=True):
        one = tokenizer.encode(text)
        assert one.ids.tolist() == many.ids.tolist()
        assert one.offsets.tolist() == many.offsets.tolist()
    assert tokenizer.encode_many([]) == []


def test_what_is_saved_transformers_loads_and_we_load_again(tokenizer: Tokenizer, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    Tokenizer.from_json(tokenizer.to_json(), tokenizer.names, limit=4096).save(tmp_path)
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    ours = Tokenizer.from_folder(tmp_path)
    assert theirs.model_max_length == ours.limit == 4096
    assert theirs(list(TEXTS))["input_ids"] == [e.ids.tolist() for e in ours.promoting.encode_many(TEXTS)]
    assert [e.ids.tolist() for e in ours.encode_many(TEXTS)] == [
        e.ids.tolist() for e in tokenizer.encode_many(TEXTS)
    ]
    assert ours.names == tokenizer.names
    assert ours.special_ids == tokenizer.special_ids


@pytest.mark.parametrize("model_type", ["longformer", "big_bird", "bert", "roberta", "xlm-roberta"])
def test_beside_a_model_transformers_loads_it_as_it_is(model_type: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    ours = Tokenizer.from_folder(tiny.write("bigbird", tmp_path))
    ours.save(tmp_path / "saved")
    (tmp_path / "saved" / "config.json").write_text(json.dumps({"model_type": model_type}))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert theirs(TEXTS[0])["input_ids"] == ours.encode(TEXTS[0]).ids.tolist()


def test_source_tells_text_pair_and_frame_apart(tokenizer: Tokenizer, family: str) -> None:
    source = tokenizer.encode("the cat", "the mat").source
    middle = 2 if family in ("roberta", "xlm-roberta") else 1
    assert source[0] == source[-1] == -1
    assert np.count_nonzero(source == -1) == 2 + middle
    inner = source[1:-1].tolist()
    assert inner == sorted(inner, key=[0, -1, 1].index)


def test_an_empty_text_is_its_frame(tokenizer: Tokenizer) -> None:
    empty = tokenizer.encode("")
    assert empty.ids.tolist() == [tokenizer.cls, tokenizer.sep]
    assert empty.source.tolist() == [-1, -1]
    assert empty.offsets.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("text", ["<s>", "</s>", "<pad>", "<mask>", "[CLS]", "[SEP]", "[MASK]", "[PAD]"])
def test_text_never_becomes_a_special_token(tokenizer: Tokenizer, text: str) -> None:
    for written in (text, f"the {text} cat", f"the{text}{text}cat"):
        for encoding in (tokenizer.encode(written), tokenizer.encode("a", written)):
            inside = set(encoding.ids[encoding.source >= 0].tolist()) - {tokenizer.unk}
            assert not inside & tokenizer.special_ids


def test_special_tokens_count_when_asked(tokenizer: Tokenizer, folder: Path) -> None:
    name = tokenizer.names["mask"]
    for promoting in (tokenizer.promoting, Tokenizer.from_folder(folder, special_in_text=True)):
        assert tokenizer.mask in promoting.encode(f"the {name} cat").ids
        assert promoting.promoting is promoting


def test_an_encoding_cannot_be_written_to(tokenizer: Tokenizer) -> None:
    with pytest.raises(ValueError, match="read-only"):
        tokenizer.encode("the").ids[0] = 1


def test_lone_surrogates_are_replaced_one_for_one(tokenizer: Tokenizer) -> None:
    broken, replaced = "the \ud83d\ude00 cat", "the \ufffd\ufffd cat"
    a, b = tokenizer.encode(broken), tokenizer.encode(replaced)
    assert a.ids.tolist() == b.ids.tolist()
    assert a.offsets.tolist() == b.offsets.tolist()


def test_stored_truncation_and_padding_are_dropped(tokenizer: Tokenizer, tmp_path: Path) -> None:
    state = json.loads(tokenizer.to_json())
    state["truncation"] = {"max_length": 3, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
    state["padding"] = {
        "strategy": {"Fixed": 512},
        "direction": "Right",
        "pad_to_multiple_of": None,
        "pad_id": 0,
        "pad_type_id": 0,
        "pad_token": tokenizer.names["pad"],
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(state))
    free = Tokenizer.from_folder(tmp_path)
    assert free.encode("the cat sat").ids.tolist() == tokenizer.encode("the cat sat").ids.tolist()


def test_decoding_gives_the_text_back(tokenizer: Tokenizer) -> None:
    encoding = tokenizer.encode("the cat sat")
    assert tokenizer.decode(encoding.ids, special=False).strip() == "the cat sat"
    assert tokenizer.decode(encoding.ids).startswith(tokenizer.names["cls"])
    assert tokenizer.tokens(encoding.ids)[0] == tokenizer.names["cls"]
    assert tokenizer.id_of(tokenizer.names["sep"]) == tokenizer.sep
    assert tokenizer.id_of("no such token") is None
    with pytest.raises(InputError, match=rf"`ids` must be at most {tokenizer.vocab_size - 1}"):
        tokenizer.decode([tokenizer.vocab_size])


def test_a_copy_is_the_same_tokenizer(tokenizer: Tokenizer) -> None:
    for original in (tokenizer, tokenizer.promoting):
        copy = pickle.loads(pickle.dumps(original))
        assert [e.ids.tolist() for e in copy.encode_many(TEXTS)] == [
            e.ids.tolist() for e in original.encode_many(TEXTS)
        ]
        assert repr(copy) == repr(original)


def test_the_environment_is_left_alone(folder: Path) -> None:
    before = dict(os.environ)
    Tokenizer.from_folder(folder).encode_many(list(TEXTS) * 20)
    assert dict(os.environ) == before


def test_what_is_not_text_is_refused(tokenizer: Tokenizer) -> None:
    wrong: Any = b"bytes"
    with pytest.raises(InputError, match="`text` must be a string, but is 'bytes'"):
        tokenizer.encode(wrong)
    with pytest.raises(InputError, match="`pair` must be a string"):
        tokenizer.encode("the", wrong)
    with pytest.raises(InputError, match=r"`texts` must be a list of texts.*Use encode\(\)"):
        tokenizer.encode_many("the")
    with pytest.raises(InputError, match=r"`texts` must be strings or \(text, pair\)"):
        tokenizer.encode_many([wrong])
