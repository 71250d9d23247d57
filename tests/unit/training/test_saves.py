"""Whatever ends the writing of a checkpoint, the newest whole one is found, and the next is written."""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from longspan.errors import LongspanError
from longspan.training import checkpoint
from longspan.training.checkpoint import RunState, checkpoints, load, newest, prune, save
from machine import full_at

CHANGES = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "tempfile.mkdtemp"}
"""What Python tells of before it changes a folder."""


def written(folder: Path, step: int) -> None:
    """A checkpoint of 80 KB whose numbers are its step, and the only one that is kept."""
    state = RunState(step=step, epoch=1, position=2)
    weights = {"weight": torch.full((10_000,), float(step))}
    save(folder, state, {"model": weights, "optimizer": {"moment": weights["weight"] / 2}})
    prune(folder, 1, -1)


def found(folder: Path) -> int:
    """The step of the newest checkpoint, which is whole."""
    path = newest(folder)
    assert path is not None
    state, tensors = load(path)
    assert tensors["model"]["weight"].tolist() == [float(state.step)] * 10_000
    assert tensors["optimizer"]["moment"].tolist() == [state.step / 2] * 10_000
    return state.step


def killed(folder: Path, change: int, work: Callable[[], object]) -> bool:
    """Work in a fork that is killed before the nth change; whether there were as many."""
    child = os.fork()
    if child == 0:
        left = change

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            if event in CHANGES and str(folder) in str(arguments[0]):
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_at_any_change_of_a_save_leaves_the_old_checkpoint_or_the_new_one(tmp_path: Path) -> None:
    kills, left = 0, []
    while True:
        folder = tmp_path / str(kills)
        written(folder, 1)
        if not killed(folder, kills + 1, lambda folder=folder: written(folder, 2)):  # type: ignore[misc]
            break
        left.append(found(folder))
        written(folder, 3)
        assert found(folder) == 3
        assert [path.name for path in checkpoints(folder)] == ["step-00000003"]
        kills += 1
    assert kills > 10
    assert left == sorted(left)
    assert {*left} == {1, 2}


def test_a_full_disk_leaves_the_old_checkpoint_and_is_told(tmp_path: Path) -> None:
    for limit in (0, 20_000, 39_000):
        folder = tmp_path / str(limit)
        written(folder, 1)
        with full_at(limit), pytest.raises(LongspanError, match="Make room"):
            written(folder, 2)
        assert found(folder) == 1
        assert [path.name for path in folder.iterdir()] == ["step-00000001"]
        written(folder, 2)
        assert found(folder) == 2


def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, 1)

    def forbidden(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path))

    monkeypatch.setattr(checkpoint, "write_safetensors", forbidden)
    with pytest.raises(OSError, match="Permission denied"):
        written(tmp_path, 2)
    assert found(tmp_path) == 1
