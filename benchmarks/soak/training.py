"""A soak of training: a run is killed at random moments until it is done, and must end with the same bits.

Each round trains a small model with dropout in processes that are killed again and again, some of them by
SIGTERM; its weights and its log are compared with those of a run that nobody disturbed. A process that finds
a checkpoint must go on from it.
"""

import hashlib
import os
import random
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import torch
from benchmarks.soak.result import Result
from torch import nn

from longspan.families.longformer.model import LongformerConfig
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.pipeline.packing import Batch
from longspan.shapes import IntArray
from longspan.tasks.classify import loss_sum
from longspan.tasks.registry import build
from longspan.training import checkpoint
from longspan.training.checkpoint import Saving
from longspan.training.evaluation import Evaluation, mean_loss
from longspan.training.log import read_log
from longspan.training.loop import train
from longspan.training.optimizer import AdamW
from longspan.training.run import CHECKPOINTS, Run
from longspan.training.source import Loss

SIZES: dict[str, Any] = {
    "vocab_size": 50,
    "width": 32,
    "layers": 2,
    "heads": 4,
    "feed_forward": 64,
    "positions": 128,
}
BEGIN = "begin"
"""Where a process notes the step that it begins with."""
LONGEST = 120.0
"""Seconds that a process may take."""


@dataclass(frozen=True)
class Texts:
    """Texts of random words, whose class is told by their first."""

    count: int = 60

    @property
    def lengths(self) -> IntArray:
        return np.random.default_rng(1).integers(5, 100, self.count)

    def batch(self, examples: IntArray, epoch: int) -> Batch:
        rows = [np.random.default_rng(example).integers(3, 50, self.lengths[example]) for example in examples]
        layout = Layout.packed([len(row) for row in rows], marked=[[0]] * len(rows))
        labels = torch.tensor([int(row[0]) % 2 for row in rows])
        return Batch(torch.from_numpy(np.concatenate(rows)), layout, None, tuple(examples.tolist()), labels)


def model() -> TaskModel:
    """The same one each time."""
    torch.manual_seed(0)
    return build(LongformerConfig(**SIZES, radius=8), "classify", labels=2)


def loss(model: nn.Module, batch: Batch) -> Loss:
    """The task's own."""
    return loss_sum(cast(TaskModel, model), batch)


def work(folder: Path) -> None:
    """Train in a folder, to the end if nothing happens, and leave a digest of the weights."""
    torch.set_num_threads(1)
    data, trained = Texts(), model()
    real = Run.go

    def go(run: Run[Batch], *given: Any) -> int | None:
        (folder / BEGIN).write_text(str(run.state.step))
        return real(run, *given)

    with patch.object(Run, "go", go):
        train(
            trained,
            data,
            loss,
            out=folder,
            evaluation=Evaluation(run=mean_loss(Texts(20), loss), every=7),
            saving=Saving(minutes=0.002),
            epochs=4,
            batch_size=8,
            micro_tokens=256,
            optimizer=AdamW(lr=1e-3),
            ema=0.9,
            progress=False,
        )
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in trained.parameters()))
    (folder / "digest").write_text(digest.hexdigest())


def forked(folder: Path) -> int:
    """A process that works; torch is loaded already."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            work(folder)
            status = 0
        except KeyboardInterrupt:
            status = 130
        finally:
            os._exit(status)
    return pid


def outcome(folder: Path) -> tuple[str, list[dict[str, object]]]:
    """What a finished run has left, but for times."""
    records = [{k: v for k, v in one.items() if k != "seconds"} for one in read_log(folder)]
    return (folder / "digest").read_text(), records


def soak(folder: Path, seconds: float, seed: int, name: str | None, kills: int = 0) -> Result:
    """Kill runs until the time is over and there were so many kills; at least one run."""
    draw, result, begun = random.Random(seed), Result("training"), time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    _, status = os.waitpid(forked(folder / "whole"), 0)
    if status:
        result.problems.append(f"the undisturbed run ended with {status}")
        return result
    whole = outcome(folder / "whole")
    usual, counts = time.monotonic() - begun, result.counts
    while not counts["rounds"] or time.monotonic() - begun < seconds or counts["kills"] < kills:
        place = folder / "run"
        shutil.rmtree(place, ignore_errors=True)
        while not (place / "digest").exists():
            _disturb(place, usual, draw, result)
            if result.problems:
                return result
        if outcome(place) != whole:
            result.problems.append(f"round {counts['rounds']} ended otherwise")
        counts["rounds"] += 1
        result.measure()
    result.seconds = time.monotonic() - begun
    result.finish()
    return result


def _disturb(place: Path, usual: float, draw: random.Random, result: Result) -> None:
    """Let a process train for a while; what it finds and leaves is noted."""
    before = _saved(place)
    pid = forked(place)
    patience = draw.uniform(0, usual / 2) if draw.random() < 0.95 else LONGEST
    number = signal.SIGTERM if draw.random() < 0.1 else signal.SIGKILL
    deadline, ended, status = time.monotonic() + patience, 0, 0
    while not ended and time.monotonic() < deadline:
        time.sleep(0.002)
        ended, status = os.waitpid(pid, os.WNOHANG)
    if not ended:
        os.kill(pid, number)
        os.waitpid(pid, 0)
        result.counts["kills" if number == signal.SIGKILL else "signals"] += 1
    elif status:
        result.problems.append(f"a process ended with {status}")
    result.counts["resumed"] += before >= 0
    if _saved(place) < before:
        result.problems.append(f"a checkpoint of step {before} was lost")
    begin = place / BEGIN
    if begin.exists():
        if (first := int(begin.read_text())) < before:
            result.problems.append(f"a run began at step {first}, its checkpoint was that of step {before}")
        begin.unlink()


def _saved(place: Path) -> int:
    """The step of the newest checkpoint; -1 if there is none."""
    newest = checkpoint.newest(place / CHECKPOINTS)
    return -1 if newest is None else checkpoint.step_of(newest)
