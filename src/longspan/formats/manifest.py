"""A folder's manifest: which files it must hold, by size, time and sha256, so that damage is found."""

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from longspan.errors import CheckpointError
from longspan.formats.atomic import as_json, write_text
from longspan.formats.files import read_json

MANIFEST = ".longspan-files.json"


def write_manifest(folder: Path) -> None:
    """Note all files of a folder as they are."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != MANIFEST]
    noted = {path.relative_to(folder).as_posix(): [*_look(path), sha256(path)] for path in paths}
    write_text(folder / MANIFEST, as_json(noted))


def damage(folder: Path, pinned: Mapping[str, str] | None = None, *, thorough: bool = False) -> str | None:
    """What is wrong with a folder; None if it is whole.

    It must hold the files of its manifest, or those `pinned` by sha256. Files whose size and time are those
    of the manifest are believed, unless `thorough`; others are read, and noted again if nothing is wrong.
    """
    if not folder.is_dir():
        return "it is not there"
    noted = _noted(folder)
    wanted = {name: digest for name, (_, _, digest) in noted.items()} if pinned is None else pinned
    if not wanted:
        return "it has no manifest"
    unread = []
    for name, digest in wanted.items():
        if not (folder / name).is_file():
            return f"{name} is missing"
        if thorough or noted.get(name) != (*_look(folder / name), digest):
            unread.append(name)
    for name in unread:
        if sha256(folder / name) != wanted[name]:
            return f"the sha256 of {name} is not {wanted[name]}"
    if unread and not thorough:
        with suppress(OSError):  # a folder that may not be written is read again each time
            write_manifest(folder)
    return None


def sha256(path: Path) -> str:
    """The checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _look(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_size, state.st_mtime_ns


def _noted(folder: Path) -> dict[str, tuple[int, int, str]]:
    """The manifest, nothing if there is none or it is damaged itself."""
    try:
        raw = read_json(folder / MANIFEST)
    except (CheckpointError, OSError):
        return {}
    found = {}
    for name, entry in raw.items():
        match entry:
            case [int(size), int(time), str(digest)]:
                found[name] = size, time, digest
            case _:
                return {}
    return found
