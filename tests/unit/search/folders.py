"""Small folders of files, indexes of them, and a tiny model that can be loaded from disk."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch

from longspan.families.task_model import TaskModel
from longspan.reader import Reader
from longspan.search.index import Index
from longspan.search.records import Entry, File, Row, Tables
from longspan.search.store import Store
from longspan.tasks.registry import build
from unit.tasks.tiny import CORPUS, config, reader, tokenizer

WORDS = " ".join(CORPUS).split()
LATE = 11
"""The width of token vectors."""


def tiny() -> Reader:
    return reader("longformer", "encode", positions=512, overflow="window")


@cache
def _late_model() -> TaskModel:
    with torch.random.fork_rng():
        torch.manual_seed(6)
        return build(config("bert", 512), "late-interaction", size=LATE).eval()


def late() -> Reader:
    """A model of late interaction, whose token vectors are of another width than its backbone."""
    return Reader(_late_model(), tokenizer("bert"), overflow="window")


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


def written(folder: Path, files: Mapping[str, str]) -> Path:
    """A folder of these files."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def by_words(folder: Path, files: Mapping[str, str]) -> Index:
    """An index of these files that no model has read."""
    index = Index.open(folder / "index")
    index.add(written(folder / "docs", files), vectors=False, progress=False)
    return index


def stored(store: Store, name: str, texts: Sequence[str], *, width: int = 0, fill: float = 0.5) -> None:
    """Put a document of these passages into a store; with a width, also vectors whose elements are `fill`."""
    entry = Entry(digest=name.encode(), title=name, characters=sum(map(len, texts)))
    rows = [Row(0, 1, "", text) for text in texts]
    with store.db.transaction():
        ids = store.add([(entry, rows)])
        store.put_files([File(Path("/", name), 1, 1, ids[entry.digest])])
        store.remove_orphans()
    if width:
        (entry,) = store.entries(f"id = {ids[entry.digest]}")
        with store.db.transaction():
            store.put_vectors([(_read(entry), tables(len(texts), width, fill))])


def _read(entry: Entry) -> Entry:
    return Entry(**vars(entry) | {"n_tokens": 2 * entry.passages})


def tables(passages: int, width: int, fill: float) -> Tables:
    """What a model might make of a document: two tokens of each passage."""
    tokens = np.full((2 * passages, width // 8 + 4), int(fill), np.uint8)
    return Tables(np.full((passages + 1, width), fill, np.float32), tokens, 2 + 2 * np.arange(passages))
