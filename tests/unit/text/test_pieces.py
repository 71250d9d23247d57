"""A long text, tokenized in pieces, has exactly the tokens that it has as a whole."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors

from longspan.text import pieces
from longspan.text.tokenizer import Tokenizer
from unit.text import tiny

# fmt: off
PARTS = (
    "the cat", "sat", " ", "  ", "\n", "\n\n", "\r\n", "\t", "it's", "café", "e\u0301", "中文。", "\n中",
    "1,234.5", '{"a":1}', "[SEP]", "<mask>", "</s>", "<t>", "\u00a0", "\x1c", "\ufeff", "👩\u200d👩", "x y",
    "x\ny", "½", "ﬁ", "\u0301", " \u0301", "''", "``", "the", " the", "ᄒ ᅡ", "\x00", "\u3000", "_", " _ ",
    "ĠĠ", "▁", " ▁a", "a" * 90,
)
# fmt: on


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE", 40)


def random_text(seed: int, parts: int = 400) -> str:
    return "".join(random.Random(seed).choices(PARTS, k=parts))


def check(backend: tokenizers.Tokenizer, ours: Tokenizer, seed: int) -> None:
    """Compare with the library, which reads the text at once."""
    text, pair = random_text(seed), random_text(seed + 1000)
    assert len(text) > 500
    for given in ((text,), (text, pair)):
        whole, found = backend.encode(*given), ours.encode(*given)
        assert found.ids.tolist() == whole.ids
        assert found.types.tolist() == whole.type_ids
        assert [tuple(place) for place in found.offsets.tolist()] == whole.offsets
        assert found.source.tolist() == [-1 if part is None else part for part in whole.sequence_ids]
        assert found.texts == given


def test_the_tokens_of_every_family_are_those_of_the_uncut_text(
    tokenizer: Tokenizer, small_pieces: None
) -> None:
    assert tokenizer.promoting._places is not None
    for seed in range(15):
        check(tokenizer.promoting._backend, tokenizer.promoting, seed)


def test_a_long_text_takes_no_orders_from_special_tokens(tokenizer: Tokenizer, small_pieces: None) -> None:
    text = random_text(3)
    (whole,) = tokenizer.encode_many([text])
    encoded = (tokenizer.encode(part) for part in re.split(r"(?= )", text))
    assert not any(tokenizer._promoted(each) for each in (whole, *encoded))


def word_piece() -> tokenizers.Tokenizer:
    words = ["[UNK]", "[CLS]", "[SEP]", *tiny.WORDS, *tiny.LETTERS[1:], *(f"##{x}" for x in tiny.LETTERS)]
    found = tokenizers.Tokenizer(models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    found.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.BertNormalizer()])
    found.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    found.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    return found


def byte_level(prefix: bool = True) -> tokenizers.Tokenizer:
    alphabet = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "th", "the", "Ġthe", "ĠĠ", "Ċa", "<mask>"]
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġ", "Ġ"), ("Ċ", "a")]
    found = tokenizers.Tokenizer(models.BPE({w: i for i, w in enumerate(alphabet)}, merges))
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    found.decoder = decoders.ByteLevel()
    found.post_processor = processors.ByteLevel(trim_offsets=True, add_prefix_space=prefix)
    found.add_tokens([tokenizers.AddedToken("<mask>", lstrip=True), "  ", "cat"])
    return found


def unigram() -> tokenizers.Tokenizer:
    words = [("<unk>", 0.0), *(("▁" + word, -2.0 - i / 8) for i, word in enumerate(tiny.WORDS))]
    words += [(letter, -9.0 - i / 8) for i, letter in enumerate("▁\n" + tiny.LETTERS)]
    found = tokenizers.Tokenizer(models.Unigram(words, unk_id=0))
    steps = [normalizers.Replace("``", '"'), normalizers.NFKD(), normalizers.StripAccents()]
    found.normalizer = normalizers.Sequence(
        [*steps, normalizers.Lowercase(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    )
    found.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    return found


@pytest.mark.parametrize("make", [word_piece, byte_level, lambda: byte_level(False), unigram])
def test_the_tokens_of_a_tokenizer_json_are_those_of_the_uncut_text(
    make: Callable[[], tokenizers.Tokenizer], small_pieces: None
) -> None:
    backend = make()
    ours = Tokenizer(backend, {}, special_in_text=True)
    assert ours._places is not None
    for seed in range(15):
        check(backend, ours, seed)


def changed(**parts: object) -> tokenizers.Tokenizer:
    state = json.loads(byte_level().to_str())
    return tokenizers.Tokenizer.from_str(json.dumps(state | parts))


def test_a_tokenizer_that_may_join_words_reads_a_text_at_once(
    small_pieces: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = {"type": "Split", "pattern": {"Regex": "a b|."}, "behavior": "Isolated", "invert": False}
    spaceless = {"type": "Replace", "pattern": {"String": " "}, "content": ""}
    backends = [changed(pre_tokenizer=None), changed(pre_tokenizer=split), changed(normalizer=spaceless)]
    across = byte_level()
    across.add_tokens(["cat sat"])
    greedy = byte_level()
    greedy.add_tokens([tokenizers.AddedToken("sat", rstrip=True)])
    monkeypatch.setattr("longspan.text.encoding.tokens", None)  # nothing may ask for pieces
    for backend in (*backends, across, greedy):
        ours = Tokenizer(backend, {}, special_in_text=True)
        assert ours._places is None
        text = "the cat sat on a b " * 20
        assert ours.encode(text).ids.tolist() == backend.encode(text).ids


def test_pieces_are_read_even_if_words_are_rare(small_pieces: None) -> None:
    text = "x" * 1000 + " the " + "y" * 1000 + "\nthe\n" + "z" * 3000
    backend = byte_level(False)
    assert Tokenizer(backend, {}).encode(text).ids.tolist() == backend.encode(text).ids


def test_a_real_file_in_pieces_of_the_usual_size(tmp_path: Path) -> None:
    rows = (
        f"2024-05-{n % 28 + 1:02} INFO service[{n}]: the cat sat on mat {n * 7919 % 100003}\n"
        for n in range(6000)
    )
    text = "".join(rows)
    assert len(text) > 8 * pieces.PIECE
    backend = word_piece()
    ours = Tokenizer(backend, {}, special_in_text=True)
    whole, found = backend.encode(text), ours.encode(text)
    assert found.ids.tolist() == whole.ids
    assert [tuple(place) for place in found.offsets.tolist()] == whole.offsets
