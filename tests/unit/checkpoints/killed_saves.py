"""Saves over a model, each killed at its next step, in forks of one process; prints what is left.

Run as `python -m unit.checkpoints.killed_saves FOLDER`; each line is a JSON object.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.errors import LongspanError
from longspan.formats.atomic import READY
from longspan.lengthening.lengthen import lengthen
from longspan.loading import load
from longspan.reader import Reader
from unit.tasks.tiny import model, reader, tokenizer

EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "tempfile.mkdtemp"}
USERS = {"README.md": "mine", ".git/HEAD": "ref: refs/heads/main", "notes/todo.txt": "write"}


def signature(folder: Path) -> list[Any]:
    """What a loaded folder is, as far as the cases differ."""
    loaded = load_model(folder)
    task, weights = loaded.model.architecture, float(next(loaded.model.parameters()).detach().sum())
    found = [task, loaded.model.config.positions, round(weights, 3)]
    if (folder / "tokenizer.json").exists():
        both = load(folder)
        found += [both.tokenizer.vocab_size, both.prompts, loaded.labels]
    return found


def raw(folder: Path) -> tuple[bytes, ...] | None:
    """What other programs read; None if they find no model or no tokenizer, and say so."""
    old = folder.with_name("old")
    if any(
        (old / name).exists() and not (folder / name).exists() for name in ("config.json", "tokenizer.json")
    ):
        return None
    files = sorted(path for path in folder.rglob("*") if path.is_file() and READY not in str(path))
    return tuple(path.read_bytes() for path in files)


def killed(folder: Path, step: int, save: Callable[[Path], object]) -> bool:
    """Save in a fork that is killed before the step-th change; whether there were as many."""
    child = os.fork()
    if child == 0:
        left = [step]

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            if event not in EVENTS or str(folder) not in str(arguments[0]):
                return
            if event == "open" and not (arguments[2] & (os.O_WRONLY | os.O_RDWR)):
                return
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        save(folder)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def cases(short: Path) -> dict[str, tuple[Callable[[Path], object], Callable[[Path], object], int]]:
    """By name: how the old model is saved, how the new one, and how many steps are left out between two."""
    old = Reader(model("longformer", "encode"), tokenizer("longformer"), prompts={"query": "query: "})
    new = reader("bert", "classify")
    small, large = model("bert", "classify"), model("bert", "classify", positions=99)
    return {
        "a reader": (old.save, new.save, 1),
        "its tokenizer": (old.save, new.tokenizer.save, 2),
        "one file by shards": (
            lambda folder: save_model(small, folder),
            lambda folder: save_model(large, folder, shard_bytes=9000),
            3,
        ),
        "shards by one file": (
            lambda folder: save_model(small, folder, shard_bytes=9000),
            lambda folder: save_model(large, folder),
            3,
        ),
        "lengthen": (
            old.save,
            lambda folder: lengthen(short, 128, out=folder, radius=8, force=True),
            12,
        ),
    }


def trials(case: str, home: Path) -> None:
    save_old, save_new, stride = cases(home.parent / "short")[case]
    save_old(home / "old")
    for name, text in USERS.items():
        (home / "old" / name).parent.mkdir(exist_ok=True)
        (home / "old" / name).write_text(text)
    shutil.copytree(home / "old", home / "new")
    save_new(home / "new")
    signatures = {"old": signature(home / "old"), "new": signature(home / "new")}
    states = {"old": raw(home / "old"), "new": raw(home / "new")}
    users = {name: {text, (home / "new" / name).read_text()} for name, text in USERS.items()}
    step, more = 1, True
    while more:
        trial = home / "trial"
        shutil.copytree(home / "old", trial)
        more = killed(trial, step, save_new)
        seen = raw(trial)
        others = (
            "none" if seen is None else next((name for name in states if states[name] == seen), "mixture")
        )
        try:
            found = signature(trial)
            ours = next((name for name in signatures if signatures[name] == found), f"mixture {found}")
        except LongspanError as error:
            ours = str(error)
        kept = all((trial / name).read_text() in texts for name, texts in users.items())
        save_new(trial)
        left = [path.name for path in trial.iterdir() if path.name.startswith(READY)]
        again = "new" if signature(trial) == signatures["new"] else "another"
        state = {"others": others, "ours": ours, "kept": kept, "again": again, "left": left}
        print(json.dumps({"case": case, "step": step, **state}))
        shutil.rmtree(trial)
        step += stride


def main(home: Path) -> None:
    torch.set_num_threads(1)
    reader("bert", "encode").save(home / "short")
    for number, case in enumerate(cases(home)):
        (home / str(number)).mkdir()
        trials(case, home / str(number))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
