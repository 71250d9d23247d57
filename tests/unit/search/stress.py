"""Writers, readers, rebuilds and kills on one index: `python -m unit.search.stress FOLDER SECONDS`.

Each writer has a folder of files that it changes; after each update it looks whether the index holds exactly
these. Readers compare every hit with what a model makes of the text when nobody disturbs it. What is wrong is
an error at the end; what was done is printed as JSON.
"""

import json
import os
import pickle
import random
import re
import signal
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import torch

from longspan.search.index import Index
from longspan.search.library import Catalog
from longspan.search.rebuild import rebuilding
from unit.search.folders import text, tiny

WRITERS, READERS, FILES, TEXTS = 3, 5, 4, 12
QUERIES = ("the river Thames", "Rome", "who lives in London?")
MODES = ("hybrid", "dense", "bm25")
CLOSE = 2e-3
"""How much a cosine may differ by what was read together with a text."""

Expected = dict[str, dict[tuple[int, str], list[float]]]
"""For each query and passage, known by its place and text, its cosines in the texts that have it."""


def main(folder: Path, seconds: float, seed: int = 0) -> int:
    """Let all of them work for some seconds."""
    draw, done = random.Random(seed), Counter[str]()
    assert os.waitpid(forked(prepare, folder), 0)[1] == 0, "the reference cannot be made"
    readers = [forked(read, folder, number) for number in range(READERS)]
    writers = {number: forked(write, folder, number, draw.random()) for number in range(WRITERS)}
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(draw.uniform(0.1, min(4, seconds / 5)))
        number = draw.randrange(WRITERS)
        os.kill(writers[number], signal.SIGKILL)
        os.waitpid(writers[number], 0)
        done["kills"] += 1
        writers[number] = forked(write, folder, number, draw.random())
    for pid in [*writers.values(), *readers]:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    last = os.waitpid(forked(compare, folder), 0)[1]
    for file in folder.glob("done-*"):
        done.update(file.read_text().split())
    print(json.dumps(done))
    wrong = [file.read_text() for file in folder.glob("wrong-*")]
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong or last else 0


def forked(work: Callable[..., None], folder: Path, *given: float) -> int:
    """A process that does some work; what goes wrong in it is written down."""
    pid = os.fork()
    if pid:
        return pid
    torch.set_num_threads(1)
    try:
        work(folder, *given)
    except BaseException:
        (folder / f"wrong-{os.getpid()}").write_text(f"{work.__name__}: {traceback.format_exc()}")
        os._exit(1)
    os._exit(0)


def note(folder: Path, what: str) -> None:
    """Count something that was done."""
    with (folder / f"done-{os.getpid()}").open("a") as file:
        file.write(f"{what}\n")


def opened(folder: Path) -> Index:
    return Index.open(folder / "index", folder / "model")


def prepare(folder: Path) -> None:
    """A model, the first index, and what is to be found."""
    tiny().save(folder / "model")
    for number in range(WRITERS):
        (folder / "docs" / str(number)).mkdir(parents=True)
        (folder / "docs" / str(number) / "0.txt").write_text(text(number))
    with opened(folder) as index:
        index.add(folder / "docs")
    (folder / "all").mkdir()
    for number in range(TEXTS):
        (folder / "all" / f"{number}.txt").write_text(text(number))
    expected: Expected = {query: defaultdict(list) for query in QUERIES}
    with Index.open(folder / "reference", folder / "model") as index:
        index.add(folder / "all")
        for query in QUERIES:
            for hit in index.search(query, top=9999, mode="dense"):
                expected[query][hit.start, hit.text].append(hit.dense or 0.0)
    (folder / "expected").write_bytes(pickle.dumps(expected))


def read(folder: Path, number: int) -> None:
    """Search until the end, with an index that stays open or one that is opened each time."""
    draw = random.Random(number)
    expected: Expected = pickle.loads((folder / "expected").read_bytes())
    index = opened(folder)
    while True:
        if number % 2:
            index.close()
            index = opened(folder)
        query, mode = draw.choice(QUERIES), draw.choice(MODES)
        by = draw.choice(("passage", "document"))
        hits = index.search(query, top=5, mode=mode, by=by)
        assert hits or mode == "bm25", "nothing is found"
        for hit in hits:
            known = expected[query].get((hit.start, hit.text))
            assert known, f"{hit.file} never held {hit.text!r} at {hit.start}"
            right = hit.dense is None or any(abs(hit.dense - each) < CLOSE for each in known)
            assert right, f"{hit.dense} instead of {known} for {query!r} in {hit.file} at {hit.start}"
        note(folder, "searches")


def write(folder: Path, number: int, seed: float) -> None:
    """Change files and bring the index up to date, again and again; now and then it is rebuilt."""
    draw, own = random.Random(seed), folder / "docs" / str(number)
    while True:
        for _ in range(draw.randrange(1, 4)):
            change(own, draw)
        if draw.random() < 0.2:
            with rebuilding(folder / "index", folder / "model") as new:
                new.add(folder / "docs")
            note(folder, "rebuilds")
        with opened(folder) as index:
            index.add(own, forget=True, vectors=draw.random() < 0.8)
            check(folder, own)
            note(folder, "updates")


def change(own: Path, draw: random.Random) -> None:
    """Write, rename or delete one file; another process finds it whole, or not at all."""
    file = own / f"{draw.randrange(1, FILES)}.txt"
    what = draw.choice(("write", "write", "rename", "delete"))
    if what == "write" or not file.exists():
        new = own.with_name(f"new-{own.name}.tmp")
        new.write_text(text(draw.randrange(TEXTS)))
        new.rename(file)
    elif what == "rename":
        file.rename(own / f"{draw.randrange(1, FILES)}.txt")
    else:
        file.unlink()


def check(folder: Path, own: Path) -> None:
    """The index holds the files of a folder as they are, and no others."""
    with Catalog(folder / "index") as catalog:
        held = {Path(record.file) for record in catalog.records() if Path(record.file).parent == own}
        assert held == {*own.iterdir()}, f"{held} instead of {[*own.iterdir()]}"
        for file in held:
            assert catalog.text(file) == file.read_text(), f"{file} is another text in the index"


def compare(folder: Path) -> None:
    """After all of it the index is whole, and answers as a fresh one does."""
    with opened(folder) as index, Index.open(folder / "fresh", folder / "model") as fresh:
        index.add(folder / "docs", forget=True)
        fresh.add(folder / "docs")
        index.verify()
        assert index.files == fresh.files
        for query in QUERIES:
            for mode in MODES:
                found, right = (
                    {
                        (hit.start, hit.text, hit.file): hit.dense or 0.0
                        for hit in each.search(query, 9999, mode=mode)
                    }
                    for each in (index, fresh)
                )
                assert found.keys() == right.keys(), f"{query!r}, {mode}"
                assert all(abs(found[key] - right[key]) < CLOSE for key in found), f"{query!r}, {mode}"
        kinds = sorted(re.split("[-.]", path.name)[0] for path in index.folder.iterdir() if path.is_file())
        assert kinds == ["index", "index", "tokens", "vectors"], kinds


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute(), float(sys.argv[2]), *map(int, sys.argv[3:])))
