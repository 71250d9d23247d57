"""The files of an index, damaged: opened, searched, checked and added to."""

import random
import shutil
import sqlite3
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import torch

from fuzz.harness import campaign
from fuzz.mutations import NUMBERS, mutated
from longspan.errors import LongspanError
from longspan.reader import Reader
from longspan.search.index import Index
from unit.search.folders import filled, text, tiny

WORDS = (b"SQLite format 3\0", b"river", b"\0\0\0\0", b"\xff\xff\xff\xff", b"CREATE TABLE x", b"\x0d")
MODES = ("hybrid", "dense", "bm25")


@cache
def model() -> Reader:
    torch.set_num_threads(1)
    return tiny()


@cache
def good() -> dict[str, bytes]:
    """The files of a good index of a few texts, whose folder is gone."""
    with tempfile.TemporaryDirectory() as place:
        docs = filled(Path(place, "docs"), 3)
        with Index.open(Path(place, "index"), model()) as index:
            index.add(docs, progress=False)
        return {path.name: path.read_bytes() for path in Path(place, "index").iterdir() if path.is_file()}


def make(draw: random.Random, folder: Path) -> None:
    """An index of which one file is damaged, or lacks, or of whose database a value is another."""
    index = folder / "index"
    index.mkdir()
    for name, data in good().items():
        (index / name).write_bytes(data)
    (folder / "new.txt").write_text(text(9), encoding="utf-8")
    way = draw.random()
    if way < 0.5:
        _change_value(index / "index.sqlite", draw)
    else:
        name = draw.choice(sorted(good()))
        if way < 0.95:
            (index / name).write_bytes(mutated(good()[name], draw, WORDS))
        else:
            (index / name).unlink()


def _change_value(path: Path, draw: random.Random) -> None:
    """Another value in some cell: what a bug would leave, since SQLite itself finds the file sound."""
    with sqlite3.connect(path) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        table = draw.choice([name for name in tables if not name.startswith("sqlite_")])
        columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
        column = draw.choice(columns)
        rows = database.execute(f'SELECT "{column}" FROM "{table}"').fetchall()
        old = draw.choice(rows)[0] if rows else None
        if isinstance(old, bytes):
            new: object = mutated(old, draw, WORDS)
        elif isinstance(old, str) and draw.random() < 0.7:
            new = old[: draw.randrange(len(old) + 1)] + draw.choice(("", "x", "\0", "é", "9" * 30, "../.."))
        else:
            new = draw.choice((None, "x", b"", 0.5, -1, *(number - 2**63 for number in NUMBERS)))
        change = f'UPDATE OR IGNORE "{table}" SET "{column}" = ? WHERE "{column}" IS ?'
        with suppress(sqlite3.Error):  # a constraint: the index stays as it was
            database.execute(change, (new, old))
    database.close()


def run(folder: Path) -> None:
    """All that can be done with an index; what one step refuses, the next may still do."""
    place = folder / "index"
    refusals: list[str] = []

    def attempt(step: object) -> None:
        assert callable(step)
        try:
            with Index.open(place, model()) as index:
                step(index)
        except LongspanError as error:
            refusals.append(str(error))  # its traceback would keep the database open

    for mode in MODES:
        attempt(lambda index, mode=mode: str(index.search("river Thames near London", mode=mode)))
    attempt(lambda index: index.search("Document 2", by="document"))
    attempt(lambda index: index.verify())
    attempt(lambda index: index.add(folder / "new.txt", progress=False))
    attempt(lambda index: index.prune())
    shutil.rmtree(place)
    if refusals:
        raise LongspanError(refusals[0])


def fuzz(seconds: float, seed: int) -> int:
    """How many indexes were tried; FuzzError if one failed."""
    return campaign("fuzz.index_files", seconds, seed)
