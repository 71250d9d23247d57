"""A folder's files say what the tokenizer is; files that cannot be believed are refused with a reason."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Regex, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from longspan.errors import InputError
from longspan.text.folder import MOST_BYTES
from longspan.text.tokenizer import Tokenizer
from unit.text import tiny


def put(folder: Path, **files: Any) -> Path:
    """Write JSON files: tokenizer_config={...} is tokenizer_config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder


def state(family: str, folder: Path) -> Any:
    """A tokenizer.json as a value."""
    return json.loads(Tokenizer.from_folder(tiny.write(family, folder)).to_json())


def test_tokenizer_json_comes_before_vocabulary_files(tmp_path: Path) -> None:
    other = state("roberta", tmp_path)
    put(tiny.write("bert", tmp_path), tokenizer=other)
    assert Tokenizer.from_folder(tmp_path).names["cls"] == "<s>"


def test_lower_case_is_what_the_config_says(tmp_path: Path) -> None:
    tiny.write("bert", tmp_path)
    lower = Tokenizer.from_folder(tmp_path)
    assert lower.encode("THE").ids.tolist() == lower.encode("the").ids.tolist()
    put(tmp_path, tokenizer_config={"do_lower_case": False, "tokenizer_class": "BertTokenizerFast"})
    cased = Tokenizer.from_folder(tmp_path)
    assert cased.unk in cased.encode("THE").ids
    put(tmp_path, tokenizer=json.loads(lower.to_json()))
    assert cased.encode("THE").ids.tolist() == Tokenizer.from_folder(tmp_path).encode("THE").ids.tolist()


@pytest.mark.parametrize("with_json", [False, True])
def test_a_space_before_the_first_word_leaves_offsets_right(tmp_path: Path, with_json: bool) -> None:
    plain = state("roberta", tmp_path)
    put(tmp_path, tokenizer_config={"add_prefix_space": True})
    if with_json:
        put(tmp_path, tokenizer=plain)
    encoding = Tokenizer.from_folder(tmp_path).encode("the cat")
    assert encoding.offsets.tolist() == [[0, 0], [0, 3], [4, 7], [0, 0]]
    assert Tokenizer.from_folder(tmp_path).tokens(encoding.ids)[1] == "Ġthe"


def test_special_tokens_are_those_the_folder_names(tmp_path: Path) -> None:
    names = {"sep_token": "[MASK]", "mask_token": {"content": "[X]", "lstrip": True}, "bos_token": None}
    put(tiny.write("bert", tmp_path), tokenizer_config=names, special_tokens_map={"cls_token": "the"})
    tokenizer = Tokenizer.from_folder(tmp_path)
    assert tokenizer.tokens(tokenizer.encode("").ids) == ["the", "[MASK]"]
    assert tokenizer.mask == tokenizer.vocab_size - 1
    assert tokenizer.bos is None
    assert Tokenizer.from_folder(tmp_path, vocab_size=tokenizer.vocab_size - 1).mask is None


def test_added_tokens_of_old_folders_keep_their_ids(tmp_path: Path) -> None:
    size = Tokenizer.from_folder(tiny.write("bert", tmp_path)).vocab_size
    extra = {"additional_special_tokens": ["<ent>"]}
    put(tmp_path, added_tokens={"<new>": size + 1, "<ent>": size}, special_tokens_map=extra)
    tokenizer = Tokenizer.from_folder(tmp_path)
    assert tokenizer.id_of("<ent>") == size
    assert size in tokenizer.special_ids
    assert tokenizer.encode("the <new> cat").ids[2] == size + 1
    put(tmp_path, added_tokens={"<new>": size + 7})
    with pytest.raises(InputError, match=f"id of '<new>'` must be {size + 7} as the folder says"):
        Tokenizer.from_folder(tmp_path)


def test_declared_added_tokens_are_added(tmp_path: Path) -> None:
    size = Tokenizer.from_folder(tiny.write("roberta", tmp_path)).vocab_size
    declared = {str(size): {"content": "<ent>", "special": True}}
    put(tmp_path, tokenizer_config={"added_tokens_decoder": declared})
    assert Tokenizer.from_folder(tmp_path).special_ids >= {size}


@pytest.mark.parametrize(("written", "limit"), [(4096, 4096), (1e30, None), ("long", None), (-1, None)])
def test_the_limit_is_the_models(written: object, limit: int | None, tmp_path: Path) -> None:
    put(tiny.write("bert", tmp_path), tokenizer_config={"model_max_length": written})
    assert Tokenizer.from_folder(tmp_path).limit == limit


def test_folders_of_sentence_transformers_are_read(tmp_path: Path) -> None:
    put(tmp_path, modules=[{"idx": 0, "name": "0", "path": "0_Transformer", "type": "any"}])
    inner = put(tmp_path / "0_Transformer", sentence_bert_config={"do_lower_case": True, "max_seq_length": 9})
    tiny.write("roberta", inner)
    tokenizer = Tokenizer.from_folder(tmp_path)
    assert tokenizer.encode("THE").ids.tolist() == tokenizer.encode("the").ids.tolist()


@pytest.mark.parametrize("path", ["../other", "/etc", "C:\\x", "a/../../other", "..\\other"])
def test_module_paths_stay_in_the_folder(path: str, tmp_path: Path) -> None:
    tiny.write("bert", put(tmp_path / "other"))
    put(tmp_path / "model", modules=[{"path": path}])
    with pytest.raises(InputError, match=r"`modules.json` must be naming folders inside"):
        Tokenizer.from_folder(tmp_path / "model")


def test_a_folder_without_a_tokenizer_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"tokenizer.json, vocab.json \+ merges.txt, vocab.txt, spiece.model"
    ):
        Tokenizer.from_folder(tmp_path)
    with pytest.raises(InputError, match="`path` must be a folder, but is"):
        Tokenizer.from_folder(tmp_path / "nowhere")
    (tmp_path / "vocab.json").write_text("{}")
    with pytest.raises(InputError, match=r"vocab.json \+ merges.txt"):
        Tokenizer.from_folder(tmp_path)


def test_files_of_other_families_are_not_misread(tmp_path: Path) -> None:
    put(tiny.write("bigbird", tmp_path), tokenizer_config={"tokenizer_class": "T5Tokenizer"})
    known = "one of BigBirdTokenizer, PegasusTokenizer to read spiece.model, but is 'T5"
    with pytest.raises(InputError, match=known):
        Tokenizer.from_folder(tmp_path)


def test_ids_beyond_the_model_are_refused(folder: Path, tokenizer: Tokenizer) -> None:
    assert Tokenizer.from_folder(folder, vocab_size=tokenizer.vocab_size)
    with pytest.raises(InputError, match=rf"giving ids below {tokenizer.vocab_size - 1}, but is"):
        Tokenizer.from_folder(folder, vocab_size=tokenizer.vocab_size - 1)


def test_a_frame_of_unknown_ids_is_refused(tmp_path: Path) -> None:
    wrong = state("bigbird", tmp_path)
    wrong["post_processor"]["special_tokens"]["[SEP]"]["ids"] = [10**6]
    with pytest.raises(InputError, match="framing texts with tokens of its vocabulary, but is 1000000"):
        Tokenizer.from_folder(put(tmp_path / "wrong", tokenizer=wrong))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokenizer.json", b"{}", "Reading tokenizer.json failed"),
        ("tokenizer.json", b"[" * 100_000, "Reading tokenizer.json failed"),
        ("tokenizer.json", b"\xff", "must be UTF-8"),
        ("tokenizer_config.json", b"[1]", "must be a JSON object"),
        ("tokenizer_config.json", b"{" * 5000, "must be JSON"),
        ("tokenizer_config.json", b'{"do_lower_case": "no"}', "must be true or false, but is 'no'"),
        ("tokenizer_config.json", b'{"cls_token": 3}', "`special token` must be a string"),
        (
            "tokenizer_config.json",
            b'{"cls_token": {"content": "x", "lstrip": 1}}',
            "object of true and false",
        ),
        ("tokenizer_config.json", b'{"extra_special_tokens": 3}', "`extra_special_tokens` must be a list"),
        ("tokenizer_config.json", b'{"added_tokens_decoder": 3}', "must be an object of ids and tokens"),
        ("added_tokens.json", b'{"a": "b"}', "Reading vocab.json and merges.txt failed"),
        ("vocab.txt", b"\xff\xfe", "`vocab.txt` must be UTF-8 text"),
        ("vocab.json", b"[1, 2]", "must be an object of tokens"),
        ("vocab.json", b'{"a": "b"}', "must be an object of tokens"),
        ("vocab.json", b"nonsense", "must be JSON"),
        ("merges.txt", b"one two three", "lines of two pieces"),
        ("merges.txt", b"zz zz", "Reading vocab.json and merges.txt failed"),
        ("spiece.model", b"\x0a\xff", "it ends early"),
    ],
)
def test_broken_files_are_named_errors(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    family = {"vocab.txt": "bert", "spiece.model": "bigbird"}.get(name, "roberta")
    (tiny.write(family, tmp_path) / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        Tokenizer.from_folder(tmp_path)


def test_an_enormous_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "tokenizer.json").open("wb") as file:
        os.truncate(file.fileno(), MOST_BYTES + 1)
    with pytest.raises(InputError, match="at most 128 MB long, but is '128 MB'"):
        Tokenizer.from_folder(tmp_path)


@pytest.mark.parametrize("pattern", [r"(a+)+b", r"(x+x+)+y|(a*)*\Gb|(a+a+)+z"])
def test_a_regex_that_explodes_is_refused(pattern: str) -> None:
    backend = Backend(models.WordLevel({"a": 0, "?": 1}, unk_token="?"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    with pytest.raises(InputError, match="regexes"):
        Tokenizer.from_json(backend.to_str())


def test_a_plain_regex_is_welcome() -> None:
    backend = Backend(models.WordLevel({"a": 0, "?": 1}, unk_token="?"))
    backend.normalizer = normalizers.Replace(Regex(r"\s+"), " ")
    assert Tokenizer.from_json(backend.to_str(), {"unk": "?"}).encode("a").ids.tolist() == [0]


def test_an_empty_vocabulary_is_refused() -> None:
    with pytest.raises(InputError, match="must have a vocabulary"):
        Tokenizer.from_json(Backend(models.BPE()).to_str())


def test_a_vocabulary_that_spells_its_special_tokens_does_not_let_text_be_one() -> None:
    backend = Backend(models.WordLevel({"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "a": 3}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = Tokenizer.from_json(backend.to_str())
    assert tokenizer.encode("a [CLS] a").ids.tolist() == [3, 2, 3]


def test_text_that_could_only_be_a_special_token_is_refused() -> None:
    backend = Backend(models.Unigram([("[UNK]", 0.0), ("[CLS]", 0.0), ("a", -1.0)], unk_id=0))
    tokenizer = Tokenizer.from_json(backend.to_str())
    assert tokenizer.encode("[CLS]a").ids.tolist() == [0, 2]
    with pytest.raises(InputError, match="special token that this tokenizer cannot split"):
        tokenizer.encode("[CLS][CLS] \ufdd0")


def test_merges_that_spell_a_special_token_do_not_let_text_be_one() -> None:
    vocabulary = {"<": 0, "s": 1, ">": 2, "s>": 3, "<s>": 4}
    backend = Backend(models.BPE(vocabulary, [("s", ">"), ("<", "s>")]))
    assert Tokenizer.from_json(backend.to_str()).encode("<s>").ids.tolist() == [0, 3]


@pytest.mark.parametrize("value", ["<s>\ud800", {"content": "\udfff"}])
def test_half_a_character_as_a_special_token_is_refused(tmp_path: Path, value: object) -> None:
    put(tiny.write("bert", tmp_path), tokenizer_config={"cls_token": value})
    with pytest.raises(InputError, match="`special token` must be valid Unicode"):
        Tokenizer.from_folder(tmp_path)
