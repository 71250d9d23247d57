"""`longspan bench search`: encoding, asking, indexing, starting and updating, with the built-in model."""

import itertools
import math
import operator
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from longspan.bench.bars import Bar, Case, at_most, figures, of_sgemm, seconds, times
from longspan.bench.kept import kept
from longspan.bench.measure import Round, Run, Turn, spread, using_threads
from longspan.bench.model import runs_table
from longspan.bench.peers import need_transformers
from longspan.bench.progress import named
from longspan.bench.report import Figure, Report, Timing, machine
from longspan.errors import whole
from longspan.native import targets
from longspan.search.compaction import compact
from longspan.search.index import TOKENS as TOKEN_KINDS
from longspan.search.index import Index
from longspan.search.own_model import OwnModel
from longspan.search.records import Entry, File, Row, Tables
from longspan.search.store import Store
from longspan.search.token_codes import pack
from longspan.text.documents import read
from longspan.text.walk import walk

if TYPE_CHECKING:
    from longspan.reader import Reader

Measured = tuple[list[Figure], list[Timing]]
CHUNK, BATCH = 256, 32
"""Tokens that sentence-transformers reads at once of this model, and how many such chunks."""
PASSAGES, WORDS, TOKENS = 250, 90, 125
"""Of a made document, and of a made passage."""


@dataclass(frozen=True)
class Sizes:
    """How much is read, searched and updated."""

    characters: int = 1 << 18
    passages: int = 100_000
    files: int = 500
    rounds: int = 5
    words: tuple[int, int] = (1000, 50_000_000)
    """Files and characters that are searched by words at once."""


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
    sizes = Sizes(1 << 16, 5_000, 50, 3, (100, 5_000_000)) if short else Sizes()
    count = sizes.rounds if rounds is None else whole("rounds", rounds, 1)
    with using_threads(whole("threads", threads, 1)), tempfile.TemporaryDirectory() as folder:
        report = Report(machine(next(iter(targets()), "none")))
        cases = cases_of(text_of(text, sizes.characters), sizes, Path(folder))
        for name in named(names, cases):
            report.add(*cases[name](count))
        print(f"{report.table()}\n{runs_table(report.timings)}")
        report.save(json)


def cases_of(text: str, sizes: Sizes, folder: Path) -> Mapping[str, Callable[[int], Measured]]:
    """The cases by name, each measured in some rounds; what one needs is made when it begins."""
    from longspan.builtin import pull

    model = pull()
    return {
        "encode": lambda n: encoded(text, model, n),
        "encode-kept": lambda n: kept("encode-kept", encoded, text, model, n),
        "query": lambda n: asking(text, sizes.passages, folder / "large", loaded(model)).measured(4 * n),
        "words": lambda n: by_words(text, *sizes.words, folder / "words").measured(n),
        "space": lambda _: taking_space(text, folder / "space", loaded(model)),
        "start": lambda n: starting(text, folder / "small").measured(n),
        "update": lambda n: updating(text, sizes.files, folder / "many", loaded(model), n),
    }


def loaded(model: Path, precision: str | None = None) -> "Reader":
    """The model for reading."""
    from longspan.loading import load

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


def encoded(text: str, model: Path, rounds: int) -> Measured:
    """The case of encoding, measured."""
    return encoding(text, model).measured(rounds)


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
    """Queries on an index of many passages of real words, made-up vectors and 1-bit tokens."""
    words, store, width = text.split(), Store(folder), reader.model.config.width
    draw, noise = random.Random(0), np.random.default_rng(0)
    pool = pack(noise.standard_normal((1 << 14, width)), noise.random(1 << 14), "1bit")
    for number in range(0, passages, PASSAGES):
        count = min(PASSAGES, passages - number)
        starts = [draw.randrange(max(1, len(words) - WORDS)) for _ in range(count)]
        rows = [Row(0, 1, "", " ".join(words[i : i + WORDS])) for i in starts]
        vectors = noise.standard_normal((count + 1, width), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        ends = np.arange(TOKENS, count * TOKENS + 1, TOKENS)
        tables = Tables(vectors, pool[noise.integers(len(pool), size=ends[-1])], ends)
        name = str(number)
        with store.db.transaction():
            ids = store.add([(Entry(digest=name.encode(), title=name), rows)])
            store.put_files([File(folder / name, 1, 1, ids[name.encode()])])
            store.put_vectors([(replace(entry, n_tokens=int(ends[-1])), tables) for entry in store.pending()])
    compact(store)
    index = Index(store, OwnModel(store.db, reader))
    queries = itertools.cycle([" ".join(draw.sample(words, 6)) for _ in range(64)])

    def ask(mode: str) -> Run:
        return Run(lambda: index.search(next(queries), mode=mode))

    modes = ("hybrid", "dense", "bm25")
    runs = {mode: (lambda mode=mode: ask(mode)) for mode in modes}
    most = {"hybrid": 60.0}
    bars = tuple(seconds(f"{mode}, ms", most.get(mode), run=mode, unit=0.001) for mode in modes)
    return Case(f"query, {passages} passages", runs, bars)


def by_words(text: str, files: int, size: int, folder: Path) -> Case:
    """New files until a search by words finds them; the model has not read any."""
    docs = written(text, files, size // files, folder / "docs")
    fresh = itertools.count()

    def call() -> None:
        with Index.open(folder / f"index-{next(fresh)}") as index:
            index.add(docs, vectors=False, progress=False)
            index.search(text[:40].replace('"', " "), mode="bm25")

    bar = seconds("s to the first results", 5.0)
    return Case(f"words of {files} files, {size / 1e6:.0f} MB", {"ours": lambda: Run(call)}, (bar,))


def taking_space(text: str, folder: Path, reader: "Reader") -> Measured:
    """Bytes of an index per passage, by how the vectors of tokens are kept."""
    docs = written(text, 4, len(text) // 4, folder / "docs")
    listed = []
    for kind in TOKEN_KINDS:
        with Index.open(folder / kind, reader, tokens=kind) as index:
            index.add(docs, progress=False)
            each = sum(index.sizes.values()) / max(1, len(index))
        listed.append(
            Figure("space", f"bytes per passage, tokens {kind}", spread([each]), (each,), None, False, "")
        )
    return listed, []


def written(text: str, files: int, size: int, folder: Path) -> Path:
    """A folder of files of about this many characters, taken from a text."""
    folder.mkdir(parents=True)
    draw, piece = random.Random(0), min(len(text), max(1, size))
    for number in range(files):
        start = draw.randrange(len(text) - piece + 1)
        part = f"{number} " + text[start : start + piece] * max(1, round(size / piece))
        (folder / f"{number}.txt").write_text(part, encoding="utf-8")
    return folder


def starting(text: str, folder: Path) -> Case:
    """The command from its start to its end on an index that is up to date, and torch's import alone."""
    docs = written(text, 8, len(text) // 8, folder / "docs")
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
    answer = seconds("s to the answer", run="longspan search")
    above = at_most("s above import torch", 0.4, "import torch", operator.sub, run="longspan search")
    return Case("start", runs, (answer, above))


def updating(text: str, files: int, folder: Path, reader: "Reader", rounds: int) -> Measured:
    """All files read once, then one of them after a change, as often as there are rounds."""
    docs = written(text, files, max(2000, len(text) // files), folder / "docs")
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
