"""Whatever ends the process of a run, the next one goes on and ends with the same bits."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from longspan.training import checkpoint
from longspan.training.log import read_log

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
KILLS = 3


def command(folder: Path, *launcher: str, **given: Any) -> list[str]:
    start = [sys.executable, *launcher, "-m", "unit.training.working"]
    return [*start, str(folder), json.dumps(given)]


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}


def result(folder: Path, *launcher: str, **given: Any) -> dict[str, Any]:
    """What a run says that nobody disturbs."""
    done = subprocess.run(
        command(folder, *launcher, **given), env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return result(tmp_path_factory.mktemp("whole") / "run")


def interrupted(folder: Path, number: int, delay: float) -> int:
    """A run that gets a signal some time after it has begun to write; how its process ended."""
    process = subprocess.Popen(command(folder), env=environment(), stdout=-1, stderr=-1)
    while process.poll() is None and not (folder / "log.jsonl").exists():
        time.sleep(0.01)
    time.sleep(delay)
    process.send_signal(number)
    process.communicate(timeout=60)
    return process.returncode


def test_a_run_that_is_killed_again_and_again_ends_with_the_same_bits(
    tmp_path: Path, whole: dict[str, Any]
) -> None:
    draw = random.Random(0)
    for _ in range(KILLS):
        interrupted(tmp_path / "run", signal.SIGKILL, draw.uniform(0, 0.5))
    assert result(tmp_path / "run") == whole
    assert sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir() if path.name[0] != ".")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_first(tmp_path: Path, whole: dict[str, Any], number: int) -> None:
    folder = tmp_path / "run"
    status = interrupted(folder, number, 0.1)
    assert status in (-number, 1, 130)  # Python's own for Ctrl-C; or the signal itself
    newest = checkpoint.newest(folder / "checkpoints")
    assert newest is not None
    steps = [record["step"] for record in read_log(folder)]
    assert checkpoint.step_of(newest) >= steps[-1]  # nothing that was done is lost
    assert result(folder) == whole


@pytest.mark.parametrize("dies", [1, 14])
def test_a_process_that_dies_inside_of_a_step_loses_only_that(
    tmp_path: Path, whole: dict[str, Any], dies: int
) -> None:
    process = subprocess.run(command(tmp_path / "run", dies=dies), env=environment(), check=False)
    assert process.returncode == 9
    assert result(tmp_path / "run") == whole


def torchrun(count: int) -> list[str]:
    return ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]


def test_one_two_and_three_processes_continue_the_same_run(tmp_path: Path, whole: dict[str, Any]) -> None:
    """1, 2, 3, then 1: the loss of each step and the weights at the end are those of one process."""
    single, folder = tmp_path / "single", tmp_path / "run"
    plain = {"stacked": True}
    expected = result(single, **plain)
    for count, dies in ((1, 9), (2, 9), (3, 7)):
        launcher = torchrun(count) if count > 1 else []
        process = subprocess.run(
            command(folder, *launcher, dies=dies, **plain),
            env=environment(),
            capture_output=True,
            check=False,
        )
        assert process.returncode != 0
    steps_before = [record["step"] for record in read_log(folder)]
    said = result(folder, **plain)
    assert said["sums"] == pytest.approx(expected["sums"], rel=1e-5)
    first, second = read_log(single), read_log(folder)
    assert [one["step"] for one in first] == [one["step"] for one in second]
    assert 0 < max(steps_before) < first[-1]["step"]
    for one, other in zip(first, second, strict=True):
        assert one.get("loss", 0) == pytest.approx(other.get("loss", 0), rel=1e-4)
        assert one["tokens"] == other["tokens"]


def test_processes_that_differ_do_the_same(tmp_path: Path) -> None:
    """In metrics, in what is no number, in the weights they reach, and in how quickly they go back."""
    words = [sys.executable, *torchrun(2), "-m", "unit.training.together", str(tmp_path)]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False, timeout=90)
    assert done.returncode == 0, done.stderr
    one, other = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert one == other
    assert [told.split("epoch 0, ")[1] for told in one["broken"]] == ["examples 8", "examples 19"]
    reached, not_reached = one["sided"]
    assert reached != 1.0 == not_reached


@pytest.mark.slow  # torch's threads now and then abort such a process when it ends, its work done
def test_processes_that_share_the_weights_train_as_one_does(tmp_path: Path) -> None:
    expected = result(tmp_path / "single", stacked=True)
    words = command(tmp_path / "shared", *torchrun(2), stacked=True, fsdp=True, dies=9)
    assert subprocess.run(words, env=environment(), capture_output=True, check=False).returncode != 0
    said = result(tmp_path / "shared", *torchrun(2), stacked=True, fsdp=True)
    assert said["sums"] == pytest.approx(expected["sums"], rel=1e-5)
