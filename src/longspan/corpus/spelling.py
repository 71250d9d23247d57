"""What a vocabulary tells of its tokens: where words begin, where sentences end, how many characters."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import tokenizers.pre_tokenizers

from longspan.errors import InputError
from longspan.shapes import BoolArray, IntArray
from longspan.text.tokenizer import Tokenizer

CONTINUES, SPACE = "##", "▁"
LETTER, DIGIT, SIGN, BLANK = range(4)
ENDS = tuple(".!?…。！？")
CLOSES = "\"'”’)]»"


@dataclass(frozen=True, eq=False)
class Spelling:
    """The vocabulary of a tokenizer as columns (vocab,), by the spelling of each token."""

    special: BoolArray
    has_words: bool
    "Whether a token's spelling tells where a word begins."
    opens: BoolArray
    "A word begins with it, whatever precedes."
    space: BoolArray
    "It is a single space, with which the next word begins."
    goes_on: BoolArray
    "It always belongs to the word before it."
    first: IntArray
    "The class of its first character: a letter, a digit, a sign or white space."
    last: IntArray
    characters: IntArray
    "How many characters of a text it covers; 0 if it is special."
    ends: BoolArray
    "A sentence may end with it."
    closes: BoolArray
    "Quotes and brackets that may stand behind a sentence."

    @staticmethod
    def of(tokenizer: Tokenizer) -> "Spelling":
        """The columns of a tokenizer."""
        names = tokenizer.tokens(range(tokenizer.vocab_size))
        special = np.zeros(len(names), bool)
        special[sorted(tokenizer.special_ids)] = True
        words = [name for name, is_special in zip(names, special.tolist(), strict=True) if not is_special]
        by_prefix = any(name.startswith(CONTINUES) and len(name) > 2 for name in words)
        bytes_of = None if by_prefix else _byte_level(words)
        spaced = any(name.startswith(SPACE) for name in words)
        texts = [_text(name, by_prefix, bytes_of) for name in names]
        classes = np.array([(_class(text[:1]), _class(text[-1:])) for text in texts])
        shown = [name if bytes_of else text for name, text in zip(names, texts, strict=True)]
        characters = [_covered(name, bytes_of) if bytes_of else len(name) for name in shown]
        return Spelling(
            special=special,
            has_words=by_prefix or bytes_of is not None or spaced,
            opens=classes[:, 0] == BLANK,
            space=np.array([text == " " for text in texts]),
            goes_on=np.array([by_prefix and name.startswith(CONTINUES) for name in names]),
            first=classes[:, 0],
            last=classes[:, 1],
            characters=np.where(special, 0, characters),
            ends=np.array([text.strip().rstrip(CLOSES).endswith(ENDS) or "\n" in text for text in texts]),
            closes=np.array([bool(text) and not text.strip(CLOSES) for text in texts]),
        )

    @cached_property
    def ordinary(self) -> IntArray:
        """The ids of tokens that are not special."""
        found = np.flatnonzero(~self.special)
        if not found.size:
            raise InputError("The tokenizer has special tokens only.")
        return found

    def words(self, ids: IntArray) -> IntArray:
        """(n,): the number of the word that each token belongs to; a special token is one of its own.

        A word begins behind white space, and where letters, digits and other signs meet; in a vocabulary of
        word pieces, with every token that continues no other.
        """
        before = np.concatenate([ids[:1], ids[:-1]])
        if self.goes_on.any():
            begins = ~self.goes_on[ids]
        else:
            begins = self.opens[ids] | ((self.first[ids] != self.last[before]) & ~self.space[before])
        begins |= self.special[ids] | self.special[before]
        words: IntArray = np.cumsum(begins) - begins[:1].sum()
        return words

    def sentences(self, ids: IntArray) -> IntArray:
        """(n,): the number of the sentence that each token belongs to, -1 for special tokens.

        A sentence ends with a full stop or the like, and with a quote or bracket behind it, where white space
        follows; in a vocabulary of word pieces, which has none, where a letter follows.
        """
        inner, before, behind = ~self.special[ids], np.concatenate([ids[:1], ids[:-1]]), ids[1:]
        stops = self.ends[ids] | (self.closes[ids] & self.ends[before])
        apart = self.first[behind] == LETTER if self.goes_on.any() else self.opens[behind]
        cuts = (stops & np.append(apart | self.special[behind], True)) | ~inner
        number = np.cumsum(cuts) - cuts
        column = np.full(len(ids), -1)
        column[inner] = np.unique(number[inner], return_inverse=True)[1]
        return column


def _byte_level(words: list[str]) -> dict[str, int] | None:
    """What byte each character of the vocabulary stands for; None if it is not of bytes."""
    alphabet = set(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    if not any("Ġ" in word for word in words) or not set("".join(words)) <= alphabet:
        return None
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + n): byte for n, byte in enumerate(others)}


def _text(name: str, by_prefix: bool, bytes_of: dict[str, int] | None) -> str:
    """What a token spells; what is no whole character is shown as U+FFFD."""
    if bytes_of is not None and all(letter in bytes_of for letter in name):
        return bytes(bytes_of[letter] for letter in name).decode("utf-8", "replace")
    return name.removeprefix(CONTINUES) if by_prefix else name.replace(SPACE, " ")


def _covered(name: str, bytes_of: dict[str, int]) -> int:
    """The characters that begin inside of a token of bytes."""
    return sum(bytes_of.get(letter, 0) & 0xC0 != 0x80 for letter in name)


def _class(letter: str) -> int:
    if not letter or letter.isspace():
        return BLANK
    if letter.isalpha() or letter == "\ufffd":
        return LETTER
    return DIGIT if letter.isnumeric() else SIGN
