"""New tokenizers are read by us and by transformers, and are the same each time."""

from pathlib import Path

import pytest
from transformers import AutoTokenizer

from longspan.corpus.tokenizers import KINDS, train_tokenizer
from longspan.errors import InputError
from longspan.text.tokenizer import Tokenizer
from unit.corpus.small import text, tokenizer

TEXTS = {"bpe": "the cat's <mask> house", "wordpiece": "The cats ran", "dna": "ACGTTGCANACG"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_tokenizer_is_read_by_us_and_by_transformers(kind: str, tmp_path: Path) -> None:
    words, sample = tokenizer(kind), TEXTS[kind]
    words.save(tmp_path)
    again, theirs = Tokenizer.from_folder(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    ids = words.promoting.encode(sample).ids.tolist()
    assert again.promoting.encode(sample).ids.tolist() == ids == theirs(sample)["input_ids"]
    assert words.mask == theirs.mask_token_id
    assert {words.pad, words.mask, words.cls, words.sep, words.unk} <= words.special_ids
    assert words.unk not in ids
    assert words.decode(ids, special=False).replace(" ", "").lower() in sample.replace(
        " ", ""
    ).lower().replace("<mask>", "")


@pytest.mark.parametrize("kind", ["bpe", "dna"])  # word pieces are numbered at random by the library
def test_the_same_texts_give_the_same_tokenizer(kind: str) -> None:
    texts = ["ACGTTGCAACGTNACG" * 40] if kind == "dna" else [text(number) for number in range(9)]
    first, second = (train_tokenizer(texts, kind, 300).to_json() for _ in range(2))
    assert first == second


def test_tokens_of_bases_have_no_more_than_sixteen() -> None:
    words = train_tokenizer(["A" * 4000], "dna", 100)
    assert max(map(len, (token for token in words.tokens(range(words.vocab_size)) if "<" not in token))) == 16


@pytest.mark.parametrize(
    ("texts", "kind", "size", "message"),
    [
        (["a"], "sentencepiece", 999, "`kind` must be one of bpe, wordpiece, dna"),
        (["a"], "bpe", 260, "`vocab_size` must be at least 261"),
        ("a", "bpe", 300, "`texts` must be an iterable of texts"),
        ([" "], "bpe", 300, "`texts` must be texts to learn from"),
    ],
)
def test_what_nothing_can_be_learnt_from_is_refused(
    texts: list[str], kind: str, size: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        train_tokenizer(texts, kind, size)
