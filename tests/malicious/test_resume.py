"""A folder to resume from that somebody else has written: it is refused, and nothing of it is run."""

import hashlib
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from longspan.errors import CheckpointError
from longspan.training import checkpoint
from longspan.training.loop import train
from longspan.training.optimizer import AdamW
from unit.training.small import Rows, Small, squares


class Runs:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def trained(folder: Path, steps: int = 3) -> None:
    options: dict[str, Any] = {"steps": steps, "batch_size": 8, "progress": False}
    train(Small(), Rows(), squares, out=folder, optimizer=AdamW(lr=1e-2), **options)


def entry(file: Path) -> list[Any]:
    """What state.json says of a file that belongs to it."""
    return [file.stat().st_size, hashlib.sha256(file.read_bytes()).hexdigest()]


@pytest.fixture
def step(tmp_path: Path) -> Path:
    """The only checkpoint of a run."""
    trained(tmp_path / "run")
    (path,) = checkpoint.checkpoints(tmp_path / "run/checkpoints")
    return path


def stated(step: Path, **changes: Any) -> None:
    known = json.loads((step / "state.json").read_text())
    (step / "state.json").write_text(json.dumps(known | changes))


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors"])
def test_a_pickle_in_the_place_of_tensors_is_refused_and_not_run(
    step: Path, tmp_path: Path, name: str
) -> None:
    canary = tmp_path / "ran"
    (step / name).write_bytes(pickle.dumps(Runs(canary)))
    files = json.loads((step / "state.json").read_text())["files"]
    stated(step, files=files | {name: entry(step / name)})
    with pytest.raises(CheckpointError, match="is refused"):
        trained(tmp_path / "run")
    assert not canary.exists()


@pytest.mark.parametrize("name", ["training_args.bin", "optimizer.pt", "rng_state.pth", "model.pkl"])
def test_files_of_other_loops_are_not_looked_at(step: Path, tmp_path: Path, name: str) -> None:
    canary = tmp_path / "ran"
    (step / name).write_bytes(pickle.dumps(Runs(canary)))
    trained(tmp_path / "run")
    assert not canary.exists()


@pytest.mark.parametrize(
    "name", ["../model.safetensors", "/etc/passwd", "model.bin", "a/b.safetensors", "", "model.safetensors\n"]
)
def test_a_file_that_is_no_file_of_a_checkpoint_is_not_opened(
    step: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    files = json.loads((step / "state.json").read_text())["files"]
    stated(step, files=files | {name: [1, "0" * 64]})
    assert checkpoint.newest(step.parent) is None
    assert "it names the file" in caplog.text


@pytest.mark.parametrize(
    "changes",
    [
        {"files": None},
        {"files": {"model.safetensors": 3}},
        {"state": None},
        {"state": {"step": 1}},
        {"state": []},
    ],
)
def test_a_state_that_is_none_is_passed_over(
    step: Path, changes: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    stated(step, **changes)
    assert checkpoint.newest(step.parent) is None
    assert "is refused" in caplog.text
