"""Arguments of the command line, drawn at random: every case ends in time, with a documented status.

A case is a fork of a process that has imported everything; it runs in a folder of its own, with stand-ins for
models that are downloaded. Left out is what is meant to go on: --watch, --keep, and benchmarks that do run.
"""

import argparse
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock, patch

SECONDS = 30.0
MEMORY = 6 << 30
ENDLESS = {"--watch", "--keep"}
SELDOM = {"doctor", "bench", "models", "completion", "pull"}
NUMBERS = (
    "1",
    "2",
    "3",
    "0",
    "-1",
    "7,",
    "8,4",
    "1.5",
    "nan",
    "inf",
    "1e9",
    "4096",
    "1000000000",
    "9" * 40,
    "٣",
)
WORDS = (
    "who pays?",
    "rent",
    "Anna",
    "",
    " ",
    "-",
    "--",
    "-x",
    '"',
    "file:*.txt",
    "(",
    "a" * 3000,
    "é",
    "\u202e",
    "\udcff",
    "*",
    "a=b",
)
PATTERNS = (
    "window",
    "Window(3)",
    "Full() | Causal()",
    "longformer-base",
    "Window(",
    '{"pattern": "Full"}',
    "{",
    "[1]",
)
PLACES = (
    *(
        "docs",
        "docs/0.txt",
        "new",
        "docs/empty.txt",
        "docs/broken.pdf",
        "docs/caf\udce9.txt",
        "pipe",
        "nowhere",
        ".",
        "..",
    ),
    *(
        "./default",
        "new/x",
        "new.npy",
        "/proc/self/mem",
        "~",
        "~nobody",
        "../outside",
        "locked",
    ),
    *("../outside/kept.txt", "questions.jsonl", "model", "link", "loop"),
)
MODELS = ("default", "./model", "kept", "model", "nope", "org/name", "a/b/c", "../outside", "docs/0.txt")
STATUSES = {0, 1, 2, 3, 4}
USUAL = 3
"""How many values of each pool, the first ones, are likely to work."""
POOLS = (NUMBERS, WORDS, PATTERNS, PLACES, MODELS)


class Tree:
    """The files that a case finds, and what must be there afterwards."""

    def __init__(self, root: Path, model: Path) -> None:
        self.root, self.home = root, root / "home"
        self.work, self.outside = root / "home" / "work", root / "home" / "outside"
        for folder in (
            self.work / "docs",
            self.outside,
            self.work / "default",
            self.work / "locked",
            root / "cache/models",
        ):
            folder.mkdir(parents=True)
        for number in range(3):
            (self.work / f"docs/{number}.txt").write_text(f"Anna pays the rent of house {number}. " * 9)
        (self.work / "docs/empty.txt").touch()
        (self.work / "docs/broken.pdf").write_bytes(b"%PDF-1.4 no more than this")
        (self.work / "docs/caf\udce9.txt").write_bytes(b"caf\xe9")
        (self.work / "locked").chmod(0)
        os.mkfifo(self.work / "pipe")
        (self.work / "link").symlink_to("docs")
        (self.work / "loop").symlink_to("loop")
        (self.work / "questions.jsonl").write_text('{"file": null, "question": "who?", "answers": []}\n')
        (self.outside / "kept.txt").write_text("This must not be lost.")
        shutil.copytree(model, self.work / "model")
        shutil.copytree(model, root / "cache/models/kept")
        self.files = set(self._names())

    def _names(self) -> list[str]:
        return [str(path) for path in self.home.rglob("*")]

    def lost(self) -> list[str]:
        """What is not there any more."""
        return sorted(self.files - set(self._names()))


def arguments(draw: random.Random) -> list[str]:
    """A line that is right, almost right or nonsense."""
    from longspan.cli import parser

    if draw.random() < 0.05:
        return [_value(draw) for _ in range(draw.randrange(4))]
    verb: argparse.ArgumentParser = parser()
    words = list[str]()
    while inner := [a for a in verb._actions if isinstance(a, argparse._SubParsersAction)]:
        name = draw.choice(
            [name for name in sorted(inner[0].choices) for _ in range(1 if name in SELDOM else 4)]
        )
        words, verb = [*words, name], inner[0].choices[name]
    given = list[list[str]]()
    for action in verb._actions:
        if ENDLESS & set(action.option_strings) or action.dest in ("help", "version"):
            continue
        if not action.option_strings or draw.random() < (0.9 if action.required else 0.12):
            given.append(_given(draw, action))
    draw.shuffle(given)
    line = [*words, *(word for group in given for word in group)]
    if words[0] == "bench":
        line.append("no-such-case")
    for _ in range(draw.choice((0, 0, 0, 1, 2))):
        line.insert(draw.randrange(1, len(line) + 1), _value(draw))
    return [word.replace("\0", "") for word in line]


def _given(draw: random.Random, action: argparse.Action) -> list[str]:
    """An argument with a value, mostly of the right kind."""
    name = [draw.choice(action.option_strings)] if action.option_strings else []
    if action.nargs == 0:
        return name
    if action.choices and draw.random() < 0.8:
        return [*name, str(draw.choice(list(action.choices)))]
    about = f"{action.dest} {action.metavar}"
    if draw.random() < 0.9:
        if action.type in (int, float) or re.search(r"\b[NSDI]\b|SIZE|length|marked", about):
            pool: Sequence[str] = NUMBERS
        elif "MODEL" in about or "source" in about:
            pool = MODELS
        elif re.search("FILE|DIR|PATH", about):
            pool = PLACES
        elif "WHAT" in about:
            pool = PATTERNS
        else:
            pool = WORDS
    else:
        pool = draw.choice(POOLS)
    count = draw.choice((0, 1, 1, 2)) if action.nargs in ("*", "+", "?") else 1
    usual = pool[:USUAL] if draw.random() < 0.6 else pool
    return [*name, *(draw.choice(usual) for _ in range(count))]


def _value(draw: random.Random) -> str:
    return draw.choice(draw.choice(POOLS))


def run(line: list[str], tree: Tree, out: Path) -> None:
    """The fork: run the command and end the process."""
    status = 99
    try:
        with (tree.work / "docs/0.txt").open("rb") as source, out.open("wb") as sink:
            for number, stream in ((0, source), (1, sink), (2, sink)):
                os.dup2(stream.fileno(), number)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, "r" if number == 0 else "w", errors="backslashreplace", closefd=False)
            for number in (0, 1, 2)
        )
        os.setsid()
        os.chdir(tree.work)
        os.environ |= {"HOME": str(tree.home), "LONGSPAN_CACHE": str(tree.root / "cache"), "PATH": "/nowhere"}
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        from longspan.cli import main

        status = main(line)
        sys.stdout.flush()
    except BaseException:
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def prepare(folder: Path) -> Path:
    """Import what commands import, and put a tiny model in place of the built-in one."""
    import torch

    torch.set_num_threads(1)
    import longspan.lengthening.lengthen
    import longspan.loading
    import longspan.search.index  # noqa: F401
    from longspan.errors import LongspanError
    from unit.search.folders import tiny

    model, offline = folder / "model", LongspanError("There is no network.")
    tiny().save(model)
    for name, stand_in in {
        "hub.builtin_folder": lambda: model,
        "hub._has_address": lambda url: False,
        "builtin.pull": Mock(side_effect=offline),
        "builtin.short_folder": Mock(side_effect=offline),
        "builtin.ensure": Mock(),
        "loading.ensure": Mock(),
    }.items():
        patch(f"longspan.{name}", stand_in).start()
    return model


def case(line: list[str], folder: Path, model: Path) -> str:
    """Run one case; what is wrong with how it ended, or ""."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        tree, out = Tree(Path(place), model), Path(place) / "out"
        child = os.fork()
        if child == 0:
            run(line, tree, out)
        began, ended, state = time.monotonic(), 0, 0
        while not ended and time.monotonic() - began < SECONDS:
            ended, state = os.waitpid(child, os.WNOHANG)
            time.sleep(0.002)
        if not ended:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
        said = out.read_text("utf-8", "replace") if out.exists() else ""
        (tree.work / "locked").chmod(0o700)
        status = os.waitstatus_to_exitcode(state)
        if not ended:
            return f"did not end within {SECONDS:.0f} s: {said[-300:]}"
        if status not in STATUSES or "Traceback" in said:
            return f"ended with {status}: {said[-2000:]}"
        if lost := tree.lost():
            return f"lost {lost}"
    return ""


def campaign(seconds: float, seed: int, only: int | None = None) -> int:
    """Run cases one after the other in this process; the number of cases."""
    failures, number = list[str](), 0
    with tempfile.TemporaryDirectory() as place:
        model, began = prepare(Path(place)), time.monotonic()
        while time.monotonic() - began < seconds if only is None else number <= only:
            line = arguments(random.Random(f"{seed} {number}"))
            if only in (None, number) and (problem := case(line, Path(place), model)):
                failures.append(f"case {number}: longspan {line!r} {problem}")
                print(failures[-1], file=sys.stderr, flush=True)
            number += 1
    assert not failures, f"{len(failures)} of {number} cases failed; the first: {failures[0]}"
    return number


def fuzz(seconds: float, seed: int) -> int:
    """Run cases in a process of their own, whose stand-ins end with it; the number, or an AssertionError."""
    command = [sys.executable, "-m", "fuzz.cli", str(seconds), str(seed)]
    paths = {"PYTHONPATH": str(Path(__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | paths)
    assert done.returncode == 0, done.stderr[-4000:]
    return int(done.stdout)


if __name__ == "__main__":
    print(campaign(float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None))
