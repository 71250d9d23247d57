"""Small texts and a tokenizer learnt from them."""

from functools import cache
from pathlib import Path

from longspan.corpus.build import build_corpus
from longspan.corpus.store import Corpus
from longspan.corpus.tokenizers import train_tokenizer
from longspan.text.tokenizer import Tokenizer

WORDS = (
    *("the", "cat", "sat", "on", "a", "mat", "and", "the", "dog", "ran", "to", "its", "red", "house"),
    *("while", "rain", "fell", "over", "old", "green", "hills", "near", "town"),
)


def text(number: int, length: int = 60) -> str:
    """A text of so many words, one for each number."""
    words = [WORDS[(number * 7 + k * k + k // 5) % len(WORDS)] for k in range(length)]
    return " ".join([str(number), *(word + "." * (k % 9 == 8) for k, word in enumerate(words))])


@cache
def tokenizer(kind: str = "bpe") -> Tokenizer:
    """One of each kind, learnt from such texts."""
    if kind == "dna":
        return train_tokenizer(["ACGTTGCAACGTNACG" * 40, "TTTACGACGGGAACCA" * 40], kind, 40)
    return train_tokenizer([text(number) for number in range(20)], kind, 320)


def written(folder: Path, count: int = 12, length: int = 60) -> Path:
    """A folder with so many files of text."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"{number:03}.txt").write_text(text(number, length))
    return folder


def corpus(folder: Path, count: int = 12, length: int = 60, kind: str = "bpe") -> Corpus:
    """A corpus of such files."""
    return build_corpus([written(folder / "texts", count, length)], folder / "corpus", tokenizer(kind))
