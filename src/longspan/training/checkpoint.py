"""Checkpoints of a run: folders that are there whole or not at all, of safetensors and JSON only."""

import logging
import math
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from longspan.errors import CheckpointError, bad, refused, whole
from longspan.formats.atomic import as_json, flush, telling_full, temporary_folder, write_text
from longspan.formats.files import read_json
from longspan.formats.manifest import sha256
from longspan.formats.safetensors import open_safetensors
from longspan.formats.weights import write_safetensors
from longspan.training.order import Cursor

STATE, MODEL, GONE = "state.json", "model.safetensors", ".gone-"
_NAME = re.compile(r"step-(\d{8,})")
log = logging.getLogger("longspan")


@dataclass(kw_only=True)
class RunState:
    """Where a run is: what it needs to go on, but for tensors."""

    step: int = 0
    epoch: int = 0
    position: int = 0
    tokens: int = 0
    "Seen so far."
    seconds: float = 0.0
    "Spent so far."
    loss: float | None = None
    "The mean of the last steps."
    evaluated: int = -1
    "The step of the last evaluation."
    best_step: int = -1
    best: dict[str, float] = field(default_factory=dict)
    "The best evaluation."
    stale: int = 0
    "Evaluations since then."
    skipped: int = 0
    "Steps without an update, as their loss was no number."
    finished: bool = False

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.epoch, self.position)


@dataclass(frozen=True, kw_only=True)
class Saving:
    """When checkpoints are written, and how many are kept beside the best."""

    minutes: float = 10.0
    "Between two; a signal, an evaluation that is the best so far and the end write one, too."
    keep: int = 1

    def __post_init__(self) -> None:
        whole("keep", self.keep, 1)
        if not self.minutes >= 0:
            raise bad("minutes", "at least 0", self.minutes)


Tensors = Mapping[str, Mapping[str, Tensor]]


def save(folder: Path, state: RunState, tensors: Tensors) -> Path:
    """Write a checkpoint: a temporary folder, flushed, then renamed; its state.json is written last.

    If there is one of this step, the tensors are its own, and only the state is written anew.
    """
    target = path_of(folder, state.step)
    if target.exists() and newest(folder) == target:
        write_text(target / STATE, _as_json(state, read_json(target / STATE)["files"]))
        return target
    with telling_full(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with temporary_folder(folder, ".step-") as fresh:
            for name, group in tensors.items():
                write_safetensors(fresh / f"{name}.safetensors", group)
            files = {path.name: [path.stat().st_size, sha256(path)] for path in sorted(fresh.iterdir())}
            (fresh / STATE).write_text(_as_json(state, files), encoding="utf-8")
            for path in (*fresh.iterdir(), fresh):
                flush(path)
            os.rename(fresh, target)
            flush(folder)
    return target


def newest(folder: Path) -> Path | None:
    """The newest checkpoint that is whole; those that are damaged are told of, and set aside."""
    for path in reversed(checkpoints(folder)):
        try:
            _checked(path)
        except CheckpointError as error:
            aside = path.with_name(f"damaged-{path.name}")
            log.warning("%s An older checkpoint is used, and this one is set aside: %s.", error, aside)
            shutil.rmtree(aside, ignore_errors=True)
            os.rename(path, aside)
        else:
            return path
    return None


def path_of(folder: Path, step: int) -> Path:
    """The checkpoint of a step."""
    return folder / f"step-{step:08d}"


def checkpoints(folder: Path) -> list[Path]:
    """All checkpoints in a folder, the oldest first."""
    found = [path for path in folder.glob("step-*") if _NAME.fullmatch(path.name) and path.is_dir()]
    return sorted(found, key=step_of)


def step_of(path: Path) -> int:
    """The step of a checkpoint."""
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else -1


def load(path: Path) -> tuple[RunState, dict[str, dict[str, Tensor]]]:
    """The state and the tensors of a checkpoint."""
    state, names = _checked(path)
    tensors = {}
    for name in names:
        part = open_safetensors(path / name)
        tensors[name.removesuffix(".safetensors")] = {key: part.read(key) for key in part.shapes}
    return state, tensors


def prune(folder: Path, keep: int, best: int) -> None:
    """Remove all checkpoints but the newest ones and the best, and what a kill has left of such."""
    for path in folder.glob(f"{GONE}*"):
        shutil.rmtree(path, ignore_errors=True)
    for path in checkpoints(folder)[:-keep]:
        if step_of(path) != best:
            _remove(path)


def _remove(path: Path) -> None:
    """Remove a checkpoint; killed meanwhile, it leaves nothing that looks like one."""
    gone = path.with_name(f"{GONE}{path.name}")
    with suppress(OSError):
        os.rename(path, gone)
        shutil.rmtree(gone, ignore_errors=True)


def _checked(path: Path) -> tuple[RunState, list[str]]:
    """The state of a checkpoint whose files are as they were written."""
    raw = read_json(path / STATE)
    files = raw.get("files")
    if not isinstance(files, dict) or MODEL not in files:
        raise refused(path / STATE, "it does not say which files belong to it, the model's among them")
    for name, entry in files.items():
        match entry:
            case [int(size), str(digest)] if re.fullmatch(r"[a-z]+\.safetensors", name):
                file = path / name
                if not file.is_file() or file.stat().st_size != size or sha256(file) != digest:
                    raise refused(file, "it is not the file that was written")
            case _:
                raise refused(path / STATE, f"it names the file {name[:100]!r}")
    state = _state(raw.get("state"), path / STATE)
    if state.step != step_of(path):
        raise refused(path / STATE, f"it is that of step {state.step}")
    return state, list(files)


def _as_json(state: RunState, files: Mapping[str, Any]) -> str:
    """state.json; figures that are no numbers are texts there, as JSON has none."""
    best = {name: value if math.isfinite(value) else str(value) for name, value in state.best.items()}
    return as_json({"state": {**asdict(state), "best": best}, "files": dict(files)})


def _state(raw: Any, place: Path) -> RunState:
    fresh = asdict(RunState())
    if not isinstance(raw, dict) or raw.keys() != fresh.keys():
        raise refused(place, "it is not the state of a run")
    for name, value in raw.items():
        usual = fresh[name]
        is_right = type(value) is type(usual) or (name == "loss" and isinstance(value, float))
        if not is_right or (isinstance(value, int) and value < usual):  # all begin with their smallest
            raise refused(place, f"{name} is {value!r}")
    try:
        best = {name: float(value) for name, value in raw["best"].items()}
    except (TypeError, ValueError):
        raise refused(place, f"best is {raw['best']!r}") from None
    return RunState(**raw | {"best": best})
