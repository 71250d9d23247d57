"""Checkpoints: at every instant a whole one is there, and what is damaged or foreign is told."""

import json
import math
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from longspan.errors import CheckpointError, LongspanError
from longspan.training import checkpoint
from longspan.training.checkpoint import RunState, Saving
from longspan.training.config import TrainingConfig
from longspan.training.evaluation import Evaluation, mean_loss
from longspan.training.log import read_log
from longspan.training.loop import train
from longspan.training.optimizer import Adafactor, AdamW
from longspan.training.weights import Weights
from machine import full_at
from unit.training.small import Rows, Small, squares
from unit.training.test_run import DATA, Stops, same, stopping, trained

TENSORS = {"model": {"w": torch.ones(3)}}


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_at_every_instant_a_whole_checkpoint_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever changes names or removes files finds one before and leaves one."""
    folder, instants = tmp_path / "run/checkpoints", 0

    def watched(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **options: Any) -> Any:
            nonlocal instants
            instants += 1
            before = checkpoint.newest(folder)
            result = real(*given, **options)
            assert before is None or checkpoint.newest(folder) is not None
            return result

        return call

    for module, name in ((os, "rename"), (os, "replace"), (os, "unlink"), (os, "rmdir")):
        monkeypatch.setattr(module, name, watched(getattr(module, name)))
    evaluation = Evaluation(run=mean_loss(Rows(7), squares), every=1)
    trained(tmp_path / "run", evaluation=evaluation, saving=Saving(minutes=0))
    assert instants > 50
    assert not list(folder.glob(".*"))


def test_a_second_checkpoint_of_a_step_is_a_new_state_of_the_same_tensors(tmp_path: Path) -> None:
    place = checkpoint.save(tmp_path, RunState(step=5), TENSORS)
    before = (place / "model.safetensors").stat()
    checkpoint.save(tmp_path, RunState(step=5, finished=True), TENSORS)
    assert (place / "model.safetensors").stat() == before
    assert checkpoint.load(place)[0].finished


def test_what_a_kill_left_is_removed(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, RunState(step=5), TENSORS)
    (tmp_path / ".gone-step-00000003").mkdir()
    checkpoint.prune(tmp_path, 1, -1)
    assert kept(tmp_path) == ["step-00000005"]


def test_a_damaged_checkpoint_does_not_count_among_those_that_are_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for step in (50, 60):
        checkpoint.save(tmp_path, RunState(step=step), TENSORS)
    (tmp_path / "step-00000060/model.safetensors").write_bytes(b"x")
    assert checkpoint.newest(tmp_path) == tmp_path / "step-00000050"
    assert "this one is set aside" in caplog.text
    checkpoint.save(tmp_path, RunState(step=55), TENSORS)
    checkpoint.prune(tmp_path, 1, -1)
    assert kept(tmp_path) == ["damaged-step-00000060", "step-00000055"]
    checkpoint.save(tmp_path, RunState(step=60), TENSORS)  # in whose way nothing stands
    assert checkpoint.newest(tmp_path) == tmp_path / "step-00000060"


def test_figures_that_are_no_numbers_are_kept(tmp_path: Path) -> None:
    best = {"loss": 0.5, "bits": math.nan, "perplexity": math.inf}
    state, _ = checkpoint.load(checkpoint.save(tmp_path, RunState(step=5, best=best), TENSORS))
    assert {name: str(value) for name, value in state.best.items()} == {
        "loss": "0.5",
        "bits": "nan",
        "perplexity": "inf",
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step": "5"}, "step is '5'"),
        ({"step": 6}, "it is that of step 6"),
        ({"position": -1}, "position is -1"),
        ({"tokens": 1.5}, "tokens is 1.5"),
        ({"finished": 1}, "finished is 1"),
        ({"best": {"loss": []}}, "best is"),
        ({"best": None}, "best is None"),
        ({"more": 1}, "it is not the state of a run"),
    ],
)
def test_a_state_of_other_types_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    place = checkpoint.save(tmp_path, RunState(step=5), TENSORS)
    raw = json.loads((place / "state.json").read_text())
    raw["state"] |= changes
    (place / "state.json").write_text(json.dumps(raw))
    with pytest.raises(CheckpointError, match=message):
        checkpoint.load(place)
    assert checkpoint.newest(tmp_path) is None


def test_a_checkpoint_without_a_model_is_refused(tmp_path: Path) -> None:
    place = checkpoint.save(tmp_path, RunState(step=5), {"optimizer": {"w.step": torch.ones(())}})
    with pytest.raises(CheckpointError, match="which files belong to it, the model's among them"):
        checkpoint.load(place)


@pytest.mark.parametrize("optimizer", [AdamW(), Adafactor()])
def test_what_an_optimizer_keeps_must_fit(optimizer: Any) -> None:
    model = Small()
    weights = Weights(model, TrainingConfig(steps=1, batch_size=1, optimizer=optimizer))
    squares(model, DATA.batch(torch.arange(3).numpy(), 0)).total.backward()
    expected = weights.state_bytes()
    weights.update(1.0, 1.0)
    state = weights.state()
    weights.restore(state, "here")
    assert expected == sum(value.nbytes for value in state["optimizer"].values())
    key = next(key for key in state["optimizer"] if key.startswith("first.weight.") and "step" not in key)
    for wrong in ({key: torch.ones(1)}, {"first.weight.other": torch.ones(7, 3)}):
        with pytest.raises(
            CheckpointError, match=r"`here` is refused: the optimizer keeps .* of first\.weight"
        ):
            weights.restore({**state, "optimizer": {**state["optimizer"], **wrong}}, "here")


def test_a_disk_that_is_full_at_a_checkpoint_leaves_the_old_one_and_the_run_goes_on(tmp_path: Path) -> None:
    whole, again = Small(), Small()
    trained(tmp_path / "whole", whole)
    options: dict[str, Any] = {"epochs": 6, "batch_size": 8, "micro_tokens": 16, "progress": False}
    options |= {"optimizer": AdamW(lr=1e-2), "saving": Saving(minutes=0)}
    with pytest.raises(Stops):
        train(Small(), DATA, stopping(16), out=tmp_path / "run", **options)
    before = checkpoint.newest(tmp_path / "run/checkpoints")
    log = tmp_path / "run/log.jsonl"
    with full_at(log.stat().st_size + 10), pytest.raises(LongspanError, match="Make room on the disk"):
        trained(tmp_path / "run")
    assert checkpoint.newest(tmp_path / "run/checkpoints") == before is not None
    trained(tmp_path / "run", again)
    assert same(whole, again)
    steps = [one["step"] for one in read_log(tmp_path / "run")]
    assert steps == sorted({*steps})


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 400 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("to mount a small disk needs root and Linux")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_on_a_full_disk_a_checkpoint_is_refused_whole(small_disk: Path) -> None:
    folder, large = small_disk / "run", {"model": {"w": torch.ones(30_000)}}
    old = checkpoint.save(folder, RunState(step=1), large)
    ballast = small_disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    with pytest.raises(LongspanError, match="Make room on the disk and save again: what was there"):
        checkpoint.save(folder, RunState(step=2), large)
    assert kept(folder) == [old.name]
    assert checkpoint.newest(folder) == old
    ballast.unlink()
    assert checkpoint.newest(folder) != checkpoint.save(folder, RunState(step=2), large)


def test_a_foreign_checkpoint_is_told(tmp_path: Path) -> None:
    trained(tmp_path)
    place = checkpoint.newest(tmp_path / "checkpoints")
    assert place is not None
    state, tensors = checkpoint.load(place)
    shutil.rmtree(place)
    tensors["model"]["first.weight"] = torch.ones(2, 2)
    checkpoint.save(tmp_path / "checkpoints", state, tensors)
    with pytest.raises(CheckpointError, match=r"first\.weight has the shape \(2, 2\), not \(7, 3\)"):
        trained(tmp_path)
