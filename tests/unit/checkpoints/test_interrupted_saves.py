"""A save that is killed or runs out of disk leaves the old model or the new one, never a mixture."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import longspan
from longspan.checkpoints.save import save_model
from longspan.errors import CheckpointError, LongspanError
from longspan.formats.atomic import READY
from longspan.lengthening.lengthen import lengthen
from machine import full_at
from unit.tasks.tiny import model, reader

TESTS = Path(__file__).parents[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_a_kill_at_any_step_leaves_the_old_model_or_the_new_one(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "unit.checkpoints.killed_saves", str(tmp_path)],
        cwd=TESTS,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    trials = [json.loads(line) for line in run.stdout.splitlines()]
    for trial in trials:
        assert trial["ours"] in ("old", "new"), trial
        assert trial["others"] in ("old", "new", "none"), trial
        assert trial["kept"], trial
        assert (trial["again"], trial["left"]) == ("new", []), trial
    for case in {trial["case"] for trial in trials}:
        assert {trial["ours"] for trial in trials if trial["case"] == case} == {"old", "new"}
    assert len(trials) > 40


@pytest.mark.parametrize("limit", [0, 300, 5000, 30_000])
def test_a_full_disk_changes_nothing_and_says_what_to_do(limit: int, tmp_path: Path) -> None:
    old, new = reader("longformer", "encode"), reader("bert", "classify")
    old.save(tmp_path / "model")
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "model").iterdir()}
    repair = r"Make room on the disk and save again: what was there is unchanged\."
    with full_at(limit), pytest.raises(LongspanError, match=rf"model` cannot be written: .*\. {repair}"):
        new.save(tmp_path / "model")
    with full_at(limit), pytest.raises(LongspanError, match="cannot be written"):
        new.save(tmp_path / "another")
    assert {path.name: path.stat().st_mtime_ns for path in (tmp_path / "model").iterdir()} == before
    assert not (tmp_path / "another").exists()
    assert longspan.load(tmp_path / "model").task == "encode"


def test_what_the_new_model_does_not_have_is_removed_and_what_is_not_a_models_is_kept(tmp_path: Path) -> None:
    reader("longformer", "encode", prompts={"query": "query: "}).save(tmp_path)
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "special_tokens_map.json").write_text('{"cls_token": "<mask>"}')
    reader("bert", "classify").save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["README.md", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    )
    found = longspan.load(tmp_path)
    assert (found.task, found.prompts) == ("classify", {})


@pytest.mark.parametrize("first", [900, 10**9])
@pytest.mark.parametrize("second", [900, 20_000, 10**9])
def test_saving_again_leaves_no_shard_of_the_old(first: int, second: int, tmp_path: Path) -> None:
    save_model(model("bert", "classify"), tmp_path, shard_bytes=first)
    save_model(model("bert", "tag"), tmp_path, shard_bytes=second)
    save_model(model("bert", "tag"), tmp_path / "alone", shard_bytes=second)
    assert {path.name for path in tmp_path.iterdir()} - {"alone"} == set(os.listdir(tmp_path / "alone"))


def test_a_save_that_cannot_be_finished_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader("longformer", "encode").save(tmp_path)
    replace = os.replace

    def read_only(source: object, target: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "replace", read_only)
    with pytest.raises(OSError, match="Read-only"):
        reader("bert", "classify").save(tmp_path)
    with pytest.raises(
        CheckpointError, match=rf"saving it was interrupted, and {READY} cannot .*Read-only.*"
    ):
        longspan.load(tmp_path)
    monkeypatch.setattr(os, "replace", replace)
    assert longspan.load(tmp_path).task == "classify"


def test_a_lengthening_may_be_repeated_where_one_was_killed(tmp_path: Path) -> None:
    reader("bert", "encode").save(tmp_path / "short")
    (tmp_path / "long" / f"{READY}-dead").mkdir(parents=True)
    lengthen(tmp_path / "short", 128, out=tmp_path / "long", radius=8)
    assert not (tmp_path / "long" / f"{READY}-dead").exists()
    assert longspan.load(tmp_path / "long").model.longest == 128
