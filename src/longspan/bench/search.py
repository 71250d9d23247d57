"""`longspan bench search`: encoding, asking, starting and updating, with the built-in model."""

import itertools
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from longspan.bench.bars import Bar, Case, of_sgemm, times
from longspan.bench.measure import Missing, Run, spread, using_threads
from longspan.bench.model import runs_table
from longspan.bench.progress import progress
from longspan.bench.report import Figure, Report, Timing, machine
from longspan.errors import bad, whole
from longspan.native import targets
from longspan.search.index import Index
from longspan.search.passages import PARTS
from longspan.search.store import File, Row, Store
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
        for name in names:
            if name not in cases:
                raise bad("case", f"one of {', '.join(cases)}", name)
        for name in progress(list(names or cases)):
            figures, timings = cases[name](count)
            report.figures += figures
            report.timings += timings
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
        found = "\n\n".join(read(path).text for path in walk([place]))
        if found.strip():
            return (found * (1 + characters // len(found)))[:characters]
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
        made = reader if precision is None else loaded(model, precision)
        return Run(lambda: made.encode([text], progress=False), flops)

    runs = {"ours": lambda: ours(None), "int8": lambda: ours("int8"), "chunks": lambda: _chunks(text, flops)}
    per_second = Bar("thousand tokens/s", lambda r: tokens / r["ours"].seconds / 1000, ("ours",))
    eight = Bar("int8, thousand tokens/s", lambda r: tokens / r["int8"].seconds / 1000, ("int8",))
    against = times("chunks", None, measure="x faster than chunks in transformers")
    bar = times("chunks", 2.5, run="int8", measure="int8, x faster than chunks in transformers")
    return Case("encode", runs, (of_sgemm(0.8), per_second, eight, against, bar))


def _chunks(text: str, flops: float) -> Run:
    """transformers on chunks of 256 tokens in batches of 32, those of equal length together."""
    try:
        import torch
        from transformers import AutoModel, AutoTokenizer  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise Missing("transformers is not installed") from None
    from longspan.builtin import NAME
    from longspan.hub import cache_folder

    folder = cache_folder() / "models" / NAME
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    def call() -> None:
        ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
        size = CHUNK - 2
        chunks = [tokenizer.decode(ids[i : i + size]) for i in range(0, len(ids), size)]
        chunks.sort(key=len, reverse=True)
        with torch.inference_mode():
            for i in range(0, len(chunks), BATCH):
                batch = tokenizer(
                    chunks[i : i + BATCH],
                    padding=True,
                    truncation=True,
                    max_length=CHUNK,
                    return_tensors="pt",
                )
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
    asked = itertools.cycle([" ".join(draw.sample(words, 6)) for _ in range(64)])

    def ask(mode: str) -> Run:
        return Run(lambda: index.search(next(asked), mode=mode))

    modes = ("hybrid", "dense", "bm25")
    runs = {mode: (lambda mode=mode: ask(mode)) for mode in modes}
    bars = tuple(_milliseconds(mode, 30.0 if mode == "hybrid" else None) for mode in modes)
    return Case(f"query, {passages} passages", runs, bars)


def _milliseconds(name: str, bar: float | None) -> Bar:
    return Bar(f"{name}, ms", lambda r: 1000 * r[name].seconds, (name,), bar, at_least=False)


def starting(text: str, folder: Path) -> Case:
    """The command from its start to its end on an index that is up to date, and torch's import alone."""
    docs = folder / "docs"
    docs.mkdir(parents=True)
    for number, part in enumerate(_cut(text, 8)):
        (docs / f"{number}.txt").write_text(part, encoding="utf-8")
    query = " ".join(text.split()[:8])
    search = ["-m", "longspan", "search", query, str(docs), "--index", str(folder / "index")]

    def command(*arguments: str) -> Run:
        def call() -> None:
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=os.environ)

        return Run(call)

    runs = {
        "longspan search": lambda: command(*search),
        "import torch": lambda: command("-c", "import torch"),
    }
    bars = (
        Bar(
            "s to the answer",
            lambda r: r["longspan search"].seconds,
            ("longspan search",),
            2.5,
            at_least=False,
        ),
        Bar("s to import torch", lambda r: r["import torch"].seconds, ("import torch",), at_least=False),
    )
    return Case("start", runs, bars)


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
        everything, shares = _seconds(index, docs), []
        for number in range(rounds):
            changed = docs / f"{number % files}.txt"
            changed.write_text(changed.read_text(encoding="utf-8") + " changed", encoding="utf-8")
            shares.append(_seconds(index, docs) / everything)
    case = f"update, 1 of {files} files"
    figure = Figure(
        case=case,
        measure="of the time for all",
        spread=spread(shares),
        samples=tuple(shares),
        bar=0.03,
        at_least=False,
    )
    return [figure], []


def _seconds(index: Index, docs: Path) -> float:
    began = time.perf_counter()
    index.add(docs, progress=False)
    return time.perf_counter() - began


def _cut(text: str, count: int) -> list[str]:
    size = max(1, len(text) // count)
    return [text[i * size : (i + 1) * size] for i in range(count)]
