"""`longspan bench search`: encoding, asking, starting and updating, with the built-in model."""

import itertools
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from longspan.bench.bars import Bar, Case, figures, of_sgemm, seconds, times
from longspan.bench.measure import Round, Run, Turn, using_threads
from longspan.bench.model import runs_table
from longspan.bench.peers import need_transformers
from longspan.bench.progress import named
from longspan.bench.report import Figure, Report, Timing, machine
from longspan.errors import whole
from longspan.native import targets
from longspan.search.index import Index
from longspan.search.passages import PARTS
from longspan.search.records import File, Row
from longspan.search.store import Store
from longspan.text.documents import read
from longspan.text.walk import walk

if TYPE_CHECKING:
    from longspan.reader import Reader

Measured = tuple[list[Figure], list[Timing]]
CHUNK, BATCH = 256, 32
"""Tokens that sentence-transformers reads at once of this model, and how many such chunks."""
WORDS = 100
"""Of a made passage."""


@dataclass(frozen=True)
class Sizes:
    """How much is read, searched and updated."""

    characters: int = 1 << 18
    passages: int = 100_000
    files: int = 500
    rounds: int = 5


def run(
    *,
    short: bool = False,
    names: Sequence[str] = (),
    rounds: int | None = None,
    threads: int = 2,
    json: Path | None = None,
    text: Path | None = None,
) -> None:
    """Print the figures of the named cases, all if none is named; save them as JSON."""
    sizes = Sizes(1 << 16, 5_000, 50, 3) if short else Sizes()
    count = sizes.rounds if rounds is None else whole("rounds", rounds, 1)
    with using_threads(whole("threads", threads, 1)), tempfile.TemporaryDirectory() as folder:
        report = Report(machine(next(iter(targets()), "none")))
        cases = cases_of(text_of(text, sizes.characters), sizes, Path(folder))
        for name in named(names, cases):
            report.add(*cases[name](count))
        print(f"{report.table()}\n{runs_table(report.timings)}")
        if json:
            json.write_text(report.json())


def cases_of(text: str, sizes: Sizes, folder: Path) -> Mapping[str, Callable[[int], Measured]]:
    """The cases by name, each measured in some rounds; what one needs is made when it begins."""
    from longspan.builtin import pull

    model = pull()
    return {
        "encode": lambda n: encoding(text, model).measured(n),
        "query": lambda n: asking(text, sizes.passages, folder / "large", loaded(model)).measured(4 * n),
        "start": lambda n: starting(text, folder / "small").measured(n),
        "update": lambda n: updating(text, sizes.files, folder / "many", loaded(model), n),
    }


def loaded(model: Path, precision: str | None = None) -> "Reader":
    """The model for reading."""
    from longspan.reader import load

    return load(model, task="encode", overflow="window", precision=precision)


def text_of(folder: Path | None, characters: int) -> str:
    """The documents of a folder (if None, of examples/), or made-up text where there is none."""
    place = folder or Path("examples")
    if folder is not None or place.is_dir():
        text = "\n\n".join(read(path).text for path in walk([place]))
        if text.strip():
            return (text * (1 + characters // len(text)))[:characters]
    draw = random.Random(0)
    parts = [a + b for a in "bdfglmnprstvk" for b in ("a", "e", "i", "o", "u", "an", "er", "is")]
    known = ["".join(draw.choices(parts, k=draw.randrange(1, 5))) for _ in range(5000)]
    words = (known[min(4999, int(draw.paretovariate(0.8)))] for _ in range(characters // 4))
    return " ".join(word + "." * (draw.random() < 0.06) for word in words)[:characters]


def encoding(text: str, model: Path) -> Case:
    """A whole document against chunks of it, which is how sentence-transformers reads it."""
    reader = loaded(model)
    config, tokens = reader.model.config, len(reader.tokenizer.encode(text))
    flops = 2 * tokens * config.layers * (4 * config.width**2 + 2 * config.width * config.feed_forward)

    def ours(precision: str | None) -> Run:
        used = reader if precision is None else loaded(model, precision)
        return Run(lambda: used.encode([text], progress=False), flops)

    runs = {"ours": lambda: ours(None), "int8": lambda: ours("int8"), "chunks": lambda: _chunks(text, flops)}
    per_second = Bar("thousand tokens/s", lambda r: tokens / r["ours"].seconds / 1000, ("ours",))
    eight = Bar("int8, thousand tokens/s", lambda r: tokens / r["int8"].seconds / 1000, ("int8",))
    against = times("chunks", None, measure="x faster than chunks in transformers")
    bar = times("chunks", 2.5, run="int8", measure="int8, x faster than chunks in transformers")
    return Case("encode", runs, (of_sgemm(0.8), per_second, eight, against, bar))


def _chunks(text: str, flops: float) -> Run:
    """transformers on chunks of 256 tokens in batches of 32, those of equal length together."""
    need_transformers()
    import torch
    from transformers import AutoModel, AutoTokenizer

    from longspan.builtin import NAME
    from longspan.hub import cache_folder

    folder = cache_folder() / "models" / NAME
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    options = {"padding": True, "truncation": True, "max_length": CHUNK, "return_tensors": "pt"}

    def call() -> None:
        ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        size = CHUNK - 2
        chunks = [tokenizer.decode(ids[i : i + size]) for i in range(0, len(ids), size)]
        chunks.sort(key=len, reverse=True)
        with torch.inference_mode():
            for i in range(0, len(chunks), BATCH):
                batch = tokenizer(chunks[i : i + BATCH], **options)
                mask = batch["attention_mask"].unsqueeze(2)
                (model(**batch).last_hidden_state * mask).sum(1) / mask.sum(1)

    return Run(call, flops)


def asking(text: str, passages: int, folder: Path, reader: "Reader") -> Case:
    """Queries on an index of many passages of made-up vectors and real words."""
    words, store = text.split(), Store(folder)
    draw, noise = random.Random(0), np.random.default_rng(0)
    for number in range(0, passages, 1000):
        count = min(1000, passages - number)
        shape = (count + 1, 1 + PARTS, reader.model.config.width)
        vectors = noise.standard_normal(shape, dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
        starts = [draw.randrange(max(1, len(words) - WORDS)) for _ in range(count)]
        rows = [Row(0, 1, None, 1, " ".join(words[i : i + WORDS])) for i in starts]
        file = File(path=folder / str(number), size=1, mtime=1, digest=b"")
        with store.db.transaction():
            store.add([(file, vectors, rows)])
    store.compact()
    index = Index(store, reader)
    queries = itertools.cycle([" ".join(draw.sample(words, 6)) for _ in range(64)])

    def ask(mode: str) -> Run:
        return Run(lambda: index.search(next(queries), mode=mode))

    modes = ("hybrid", "dense", "bm25")
    runs = {mode: (lambda mode=mode: ask(mode)) for mode in modes}
    most = {"hybrid": 30.0}
    bars = tuple(seconds(f"{mode}, ms", most.get(mode), run=mode, unit=0.001) for mode in modes)
    return Case(f"query, {passages} passages", runs, bars)


def starting(text: str, folder: Path) -> Case:
    """The command from its start to its end on an index that is up to date, and torch's import alone."""
    docs = folder / "docs"
    docs.mkdir(parents=True)
    size = max(1, len(text) // 8)
    for i in range(8):
        (docs / f"{i}.txt").write_text(text[i * size : (i + 1) * size], encoding="utf-8")
    query = " ".join(text.split()[:8])
    search = ["-m", "longspan", "search", query, str(docs), "--index", str(folder / "index")]

    def command(*arguments: str) -> Run:
        def call() -> None:
            done = subprocess.run([sys.executable, *arguments], capture_output=True, env=os.environ)
            if done.returncode > 1:  # 1: no good match, which takes as long
                done.check_returncode()

        return Run(call)

    commands = {"longspan search": search, "import torch": ["-c", "import torch"]}
    runs = {name: partial(command, *arguments) for name, arguments in commands.items()}
    answer = seconds("s to the answer", 2.5, run="longspan search")
    return Case("start", runs, (answer, seconds("s to import torch", run="import torch")))


def updating(text: str, files: int, folder: Path, reader: "Reader", rounds: int) -> Measured:
    """All files read once, then one of them after a change, as often as there are rounds."""
    docs = folder / "docs"
    docs.mkdir(parents=True)
    size = max(2000, len(text) // files)
    draw = random.Random(0)
    for number in range(files):
        start = draw.randrange(max(1, len(text) - size))
        (docs / f"{number}.txt").write_text(f"{number} {text[start : start + size]}", encoding="utf-8")
    with Index.open(folder / "index", reader) as index:
        everything = _seconds(index, docs)
        results: list[Round] = []
        for number in range(rounds):
            changed = docs / f"{number % files}.txt"
            changed.write_text(changed.read_text(encoding="utf-8") + " changed", encoding="utf-8")
            results.append({"ours": Turn(_seconds(index, docs), math.nan)})
    bar = seconds("of the time for all", 0.03, unit=everything)
    return figures(f"update, 1 of {files} files", [bar], results, {}), []


def _seconds(index: Index, docs: Path) -> float:
    began = time.perf_counter()
    index.add(docs, progress=False)
    return time.perf_counter() - began
