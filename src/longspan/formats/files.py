"""Files in a folder that is not trusted: where they may be, and JSON that is read strictly."""

import json
import re
import stat
from collections import Counter
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO

from longspan.errors import CheckpointError, refused

DEEPEST = 64
"""How deep lists and objects may nest in JSON; real files have about five levels."""
_PLAIN = re.compile(r"\w[\w.-]{0,199}", re.ASCII)
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # open a device on Windows


def inside(folder: Path, name: str, suffix: str = "") -> Path:
    """The regular file `name` directly in `folder`; names and links that lead elsewhere are refused."""
    if not _PLAIN.fullmatch(name) or _DEVICES.fullmatch(name):
        raise refused(name, "it is not the plain name of a file", "Fix the index that names it.")
    if not name.endswith(suffix):
        raise refused(name, f"its name does not end in {suffix}", "Fix the index that names it.")
    path = folder / name
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError):
        raise refused(path, "it does not exist", "Download or save the checkpoint again.") from None
    if not any(real.parent == home or home in real.parents for home in _homes(folder.resolve())):
        raise refused(path, f"it links to {real}, outside its folder", "Put the file itself there.")
    if not stat.S_ISREG(real.stat().st_mode):
        raise refused(path, "it is not a regular file")
    return path


def _homes(folder: Path) -> list[Path]:
    """Where the files of `folder` may be stored: in it, or in the two blob stores of the hub's cache."""
    for snapshot in (folder, folder.parent):  # the second for folders such as 1_Pooling
        repository = snapshot.parent.parent
        if snapshot.parent.name == "snapshots" and repository.name.startswith("models--"):
            return [folder, repository / "blobs", repository.parent / "blobs"]
    return [folder]


def exactly(file: BinaryIO, count: int, path: Path) -> bytes:
    """The next `count` bytes; the caller has compared `count` with the size of the file."""
    data = file.read(count)
    if len(data) != count:
        raise cut_off(path)
    return data


def cut_off(path: Path) -> CheckpointError:
    """The error for a file that ends too early."""
    return refused(path, "it was cut off", "Download or save it again.")


def read_json(path: Path, most_bytes: int = 8 << 20) -> dict[str, Any]:
    """The object in a JSON file of at most `most_bytes`, with no key twice and no NaN or infinity."""
    try:
        mode = path.stat().st_mode
    except OSError:
        raise refused(path, "it does not exist", "Download or save the checkpoint again.") from None
    if not stat.S_ISREG(mode):
        raise refused(path, "it is not a regular file")
    with path.open("rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise refused(path, f"it is larger than {most_bytes:,} bytes")
    return parse_json(data, path)


def parse_json(data: bytes, path: Path) -> dict[str, Any]:
    """The object that `data` encodes; `path` is named in errors."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise refused(path, f"it is not UTF-8 text (byte {error.start})", "Save it as UTF-8.") from None
    try:
        value = STRICT.decode(text)
    except RecursionError:
        raise refused(path, f"it nests deeper than {DEEPEST} levels") from None
    except ValueError as error:
        raise refused(path, f"it is not the JSON expected here ({error})") from None
    if not isinstance(value, dict):
        raise refused(path, "it does not hold a JSON object")
    if _deeper_than(value, DEEPEST):
        raise refused(path, f"it nests deeper than {DEEPEST} levels")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice[:80]!r} appears twice")
    return unique


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")


def _finite(digits: str) -> float:
    if not isfinite(number := float(digits)):
        raise ValueError(f"{digits[:40]} is too large for a number")
    return number


def _short(digits: str) -> int:
    if len(digits) > 40:  # far beyond any size; longer ones take quadratic time
        raise ValueError(f"{digits[:40]}... is too large for a number")
    return int(digits)


STRICT = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite, parse_int=_short
)
"""JSON with no key twice, no NaN, no infinity and no number that takes long to read; else a ValueError."""


def _deeper_than(value: object, levels: int) -> bool:
    layer = [value]
    for _ in range(levels):
        layer = [
            child
            for item in layer
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
    return any(isinstance(item, dict | list) for item in layer)
