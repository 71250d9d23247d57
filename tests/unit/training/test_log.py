"""The log of a run: lines that survive kills, and curves."""

import json
from pathlib import Path

import pytest

from longspan.errors import LongspanError
from longspan.training.log import RunLog, read_log


def test_a_run_that_goes_on_writes_later_lines_anew(tmp_path: Path) -> None:
    log = RunLog(tmp_path, 0, 0)
    for step in range(1, 6):
        log.write({"step": step, "loss": 1.0 / step})
    log.close()
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"step": 6, "lo')  # killed
    assert [one["step"] for one in read_log(tmp_path)] == [1, 2, 3, 4, 5]
    again = RunLog(tmp_path, 3, 0)
    again.write({"step": 4, "loss": 9.0})
    again.close()
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [1, 2, 3, 4]
    assert read_log(tmp_path)[-1]["loss"] == 9.0
    assert read_log(tmp_path / "nowhere") == []


def test_an_evaluation_that_the_run_does_not_know_is_written_anew(tmp_path: Path) -> None:
    log = RunLog(tmp_path, 0, 0)
    records: list[dict[str, float]] = [{"step": 3, "loss": 1.0}, {"step": 3, "eval/loss": 2.0}]
    for record in records:
        log.write(record)
    log.rewind(3, 3)
    assert read_log(tmp_path) == records
    log.rewind(3, 0)
    assert read_log(tmp_path) == records[:1]
    log.close()


def test_curves_are_tensorboards(tmp_path: Path) -> None:
    board = pytest.importorskip("tensorboard")
    log = RunLog(tmp_path, 0, 0, tensorboard=True)
    log.write({"step": 1, "loss": 0.5})
    log.close()
    assert board is not None
    assert list((tmp_path / "tensorboard").glob("events*"))


def test_without_tensorboard_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    with pytest.raises(LongspanError, match=r"pip install longspan\[tensorboard\]"):
        RunLog(tmp_path, 0, 0, tensorboard=True)
