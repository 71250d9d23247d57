"""Folders -> the files in them that can be read as documents."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from longspan.errors import bad
from longspan.text.files.kinds import HEAD, SUFFIXES, kind_of
from longspan.text.files.parsed import Refusal
from longspan.text.files.plain import looks_binary

Tell = Callable[[Path, str], None]


def walk(
    paths: Iterable[str | os.PathLike[str]],
    *,
    hidden: bool = False,
    skipped: Tell | None = None,
    failed: Tell | None = None,
) -> Iterator[Path]:
    """Files given by name, and readable files in the folders given, each once and in sorted order.

    In folders, hidden files, links to folders, binary files and unknown suffixes are left out;
    `skipped(path, reason)` is told about each, but not about hidden ones, and `failed` (if None, `skipped`,
    too) about folders and files that cannot be looked into.
    """
    if isinstance(paths, str | os.PathLike):
        raise bad("paths", "a list of paths", str(paths), "Put it into a list.")
    tell = skipped or (lambda path, reason: None)
    fail = failed or tell
    seen: set[str] = set()
    for given in paths:
        path = Path(given)
        if not os.path.exists(path):
            raise bad("paths", "files and folders that exist", str(path))
        for found in _inside(path, hidden, tell, fail) if path.is_dir() else (path,):
            real = os.path.realpath(found)
            if real in seen:
                tell(found, "it was found before under another name or path")
            else:
                seen.add(real)
                yield found


def _inside(folder: Path, hidden: bool, tell: Tell, fail: Tell) -> Iterator[Path]:
    """Depth first, without recursion: a deep tree is no reason to fail."""
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        if path is not folder and not path.is_dir():
            try:
                reason = _reason(path)
            except OSError as error:
                fail(path, error.strerror or str(error))
                continue
            if reason is None:
                yield path
            else:
                tell(path, reason)
            continue
        if path is not folder and path.is_symlink():
            tell(path, "it is a link to a folder")
            continue
        try:
            names = sorted(os.listdir(path), reverse=True)
        except OSError as error:
            fail(path, error.strerror or str(error))
            continue
        waiting += [path / name for name in names if hidden or not name.startswith(".")]


def _reason(path: Path) -> str | None:
    """Why a file in a folder is not read; None if it is. Raises OSError if it cannot be looked into."""
    suffix = path.suffix.lower()
    if not path.is_file():
        return "it is not a regular file, or a link to nothing"
    if suffix and suffix not in SUFFIXES:
        return f"its suffix {suffix} is not known"
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
        kind = kind_of(path, head)
    except Refusal as refusal:
        return refusal.reason
    return "it looks binary" if kind in ("text", "markdown") and looks_binary(head) else None
