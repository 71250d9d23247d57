"""A soak of search: files change, an index is updated, killed, rebuilt, and must answer as a fresh one does.

Each round changes some files and lets `longspan index` bring the index up to date, killed at random moments,
while this process, which has the index open from the first round to the last, searches. Then this process
updates the index itself, and compares what it finds with a new index of the same files.
"""

import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from benchmarks.soak.result import Result

from longspan.search.index import Index

VOCABULARY = """
    river bank market council winter engine garden letter harbor signal copper teacher border valley doctor
    bridge summer anchor kitchen sailor forest window railway captain island painter thunder mirror orchard
    palace contract tenant rent dollar notice party clause interest delay repair water light stone glass
"""
WORDS = VOCABULARY.split()
QUERIES = (
    "who pays the rent?",
    "a bridge over the river",
    "the captain and the harbor in winter",
    "copper and glass",
    "notice of the contract",
)
MODES = ("hybrid", "dense", "bm25")
FILES, SENTENCES = 16, 40
CLOSE = {"dense": 2e-3, "bm25": 1e-6, "hybrid": 0.05}
"""How much a score may differ by what was read together with a text."""
LONGEST = 300.0
"""Seconds that an update may take."""
COMMAND = (sys.executable, "-c", "from longspan.cli import script; script()")


class Soak:
    """The files, the index, and what they should hold."""

    def __init__(self, folder: Path, seed: int, model: str | None) -> None:
        self.draw, self.model, self.result = random.Random(seed), model, Result("search")
        self.docs, self.place, self.fresh = folder / "docs", folder / "index", folder / "fresh"
        self.docs.mkdir(parents=True)
        self.texts: set[str] = set()
        self.before: set[str] = set()
        "What the files held in this round and in the one before: nothing else may be found."
        for number in range(FILES):
            self.write(self.docs / f"{number}.txt")

    def text(self) -> str:
        lines = []
        for number in range(self.draw.randrange(2, SENTENCES)):
            words = " ".join(self.draw.choices(WORDS, k=self.draw.randrange(5, 18)))
            lines.append(words.capitalize() + (".\n\n" if number % 5 == 4 else ". "))
        return f"Text {self.draw.randrange(10**9)}. " + "".join(lines)

    def write(self, file: Path) -> None:
        """Another text for a file, which is never there by halves."""
        content = self.text()
        self.texts.add(content)
        new = file.parent.parent / "new.tmp"
        new.write_text(content, encoding="utf-8")
        new.replace(file)

    def change(self) -> None:
        """Write, rename, copy, empty or delete some files."""
        self.before = {file.read_text(encoding="utf-8") for file in self.docs.iterdir()}
        self.texts = {*self.before}
        for _ in range(self.draw.randrange(1, 5)):
            file, other = (self.docs / f"{self.draw.randrange(FILES)}.txt" for _ in range(2))
            what = self.draw.choice(("write", "write", "write", "rename", "copy", "empty", "delete"))
            if what == "write" or not file.exists():
                self.write(file)
            elif what == "rename":
                file.replace(other)
            elif what == "copy" and file != other:
                shutil.copy(file, other)
            elif what == "empty":
                file.write_text("", encoding="utf-8")
            elif what == "delete":
                file.unlink()

    def update(self, index: Index) -> None:
        """Bring the index up to date by the command, killed some times, while this process searches."""
        for _ in range(self.draw.randrange(4)):
            self.run(index, kill=self.draw.expovariate(1 / 4), rebuild=self.draw.random() < 0.2)
        rebuild = self.draw.random() < 0.2
        self.run(index, rebuild=rebuild)
        self.result.counts["updates"] += 1
        self.result.counts["rebuilds"] += rebuild

    def run(self, index: Index, *, kill: float | None = None, rebuild: bool = False) -> None:
        model = ["--model", self.model] if self.model else []
        options = ["--index", str(self.place), "--yes", *model, *(["--rebuild"] if rebuild else [])]
        command = [*COMMAND, "index", str(self.docs), *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        stop = threading.Event()
        thread = threading.Thread(target=self.search, args=(index, stop))
        thread.start()
        try:
            _, wrong = process.communicate(timeout=LONGEST if kill is None else kill)
            if process.returncode:
                self.result.problems.append(f"longspan index ended with {process.returncode}: {wrong}")
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            if kill is None:
                self.result.problems.append(f"longspan index took more than {LONGEST:.0f} seconds")
            self.result.counts["kills"] += 1
        finally:
            stop.set()
            thread.join()

    def search(self, index: Index, stop: threading.Event) -> None:
        """Search until told to stop: nothing is found that no file has held since the round before."""
        while not stop.is_set():
            query, mode = random.choice(QUERIES), random.choice(MODES)
            try:
                hits = index.search(query, mode=mode)
            except Exception as error:
                self.result.problems.append(f"a search failed: {error!r}")
                return
            self.result.counts["searches"] += 1
            for hit in hits:
                if not any(text[hit.start : hit.end] == hit.text for text in self.texts):
                    self.result.problems.append(f"no file held {hit.text!r}, found in {hit.file}")

    def compare(self, index: Index) -> None:
        """The index holds every file, is whole, and answers as a fresh one."""
        index.add(self.docs, forget=True, progress=False)
        index.verify()
        shutil.rmtree(self.fresh, ignore_errors=True)
        with Index.open(self.fresh, index.reader) as fresh:
            fresh.add(self.docs, progress=False)
            if index.files != fresh.files or index.files != sorted(self.docs.iterdir()):
                self.result.problems.append(f"files are lost: {sorted({*fresh.files} ^ {*index.files})}")
            for query in QUERIES:
                for mode in MODES:
                    self.compare_answers(index, fresh, query, mode)

    def compare_answers(self, index: Index, fresh: Index, query: str, mode: str) -> None:
        found, right = (
            {(hit.file, hit.start, hit.text): hit.score for hit in each.search(query, 100, mode=mode)}
            for each in (index, fresh)
        )
        self.result.counts["comparisons"] += 1
        off = [key for key in {*found, *right} if abs(found.get(key, 0) - right.get(key, 0)) > CLOSE[mode]]
        for file, start, _ in off[:1]:
            self.result.problems.append(
                f"{query!r} by {mode}: {file} at {start} is not what a fresh index finds"
            )


def soak(folder: Path, seconds: float, seed: int, model: str | None) -> Result:
    """Go on for some seconds, and finish the last round."""
    work = Soak(folder, seed, model)
    result, began = work.result, time.monotonic()
    with Index.open(work.place, model) as index:
        index.add(work.docs, progress=False)
        while time.monotonic() < began + seconds and not result.problems:
            work.change()
            work.update(index)
            work.compare(index)
            result.counts["rounds"] += 1
            result.measure()
            rounds, minutes = result.counts["rounds"], (time.monotonic() - began) / 60
            print(
                f"round {rounds}, {minutes:.1f} minutes, {result.resident[-1] / 1e6:.0f} MB", file=sys.stderr
            )
    result.seconds = time.monotonic() - began
    result.finish()
    return result
