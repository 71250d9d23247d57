"""Small folders of files, and a tiny model that can be loaded from disk."""

from pathlib import Path

from longspan.reader import Reader
from unit.tasks.tiny import CORPUS, reader

WORDS = " ".join(CORPUS).split()


def tiny() -> Reader:
    return reader("longformer", "encode", positions=512, overflow="window")


def text(number: int, sentences: int = 30) -> str:
    """Another text for each number."""
    lines = []
    for i in range(sentences):
        words = [WORDS[(number * 7 + i * (number + 3) + j * (i + 2)) % len(WORDS)] for j in range(9)]
        lines.append(" ".join(words) + (".\n\n" if i % 5 == 4 else ". "))
    return f"Document {number}. " + "".join(lines)


def filled(folder: Path, count: int = 4) -> Path:
    """A folder of `count` texts."""
    folder.mkdir(exist_ok=True)
    for number in range(count):
        (folder / f"{number}.txt").write_text(text(number), encoding="utf-8")
    return folder
