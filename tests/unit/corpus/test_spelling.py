"""What tokens spell: words as the tokenizer itself cuts them, characters of the text, ends of sentences."""

import re

import numpy as np
import pytest
import tokenizers

from longspan.corpus.spelling import Spelling
from longspan.errors import InputError
from longspan.text.tokenizer import Tokenizer
from unit.corpus.small import tokenizer

TEXT = (
    "The naïve dog (an old one) ran 3.5 miles; it sat, then 'again'. Rain fell! Was it?  Über\nal: 你好 x2."
)


def alone(words: Tokenizer) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_str(words.to_json())


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_words_are_those_of_the_tokenizer(kind: str) -> None:
    words = tokenizer(kind)
    encoding, spelling = alone(words).encode(TEXT), Spelling.of(words)
    numbers = spelling.words(np.array(encoding.ids))
    theirs = encoding.word_ids
    for i in range(2, len(theirs) - 1):
        same = theirs[i] == theirs[i - 1]
        assert (numbers[i] == numbers[i - 1]) == same, encoding.tokens[i - 1 : i + 1]
    assert numbers[0] == 0
    assert numbers[-1] != numbers[-2]  # a special token is a word of its own


def test_tokens_of_bytes_cover_every_character_once() -> None:
    ids = tokenizer().encode(TEXT).ids
    assert Spelling.of(tokenizer()).characters[ids].sum() == len(TEXT)


def test_word_pieces_cover_what_is_no_space() -> None:
    words = tokenizer("wordpiece")
    ids = words.encode("the dogs sat").ids
    assert Spelling.of(words).characters[ids].sum() == len("thedogssat")


def test_bases_cover_themselves_and_are_no_words() -> None:
    words = tokenizer("dna")
    spelling = Spelling.of(words)
    assert spelling.characters[words.encode("ACGTTGCAACGT").ids].sum() == 12
    assert not spelling.has_words


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_sentences_end_where_people_end_them(kind: str) -> None:
    words = tokenizer(kind)
    text = 'the cat sat. "a dog ran." it ran 3.5 on... rain fell. the hills'
    text = text.replace('"', "") if kind == "wordpiece" else text  # which has no quotes
    ids = words.encode(text).ids
    numbers = Spelling.of(words).sentences(ids)
    assert numbers[0] == numbers[-1] == -1
    pieces = [words.decode(ids[numbers == number]).strip() for number in range(numbers.max() + 1)]
    wanted = [piece.strip() for piece in re.findall(r'.*?[.!]+"?(?: |$)|.+$', text.replace("3.5", "3,5"))]
    shown = [piece.replace(" ", "") for piece in pieces]
    assert shown == [piece.replace(" ", "").replace("3,5", "3.5") for piece in wanted]
    assert len(shown) == 5


def test_a_vocabulary_of_special_tokens_only_is_refused() -> None:
    special = np.ones(3, bool)
    nothing = np.zeros(3, int)
    spelling = Spelling(
        special, False, special, special, special, nothing, nothing, nothing, special, special
    )
    with pytest.raises(InputError, match="special tokens only"):
        _ = spelling.ordinary
