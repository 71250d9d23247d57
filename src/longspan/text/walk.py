"""Folders to the files in them that can be read as documents."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from longspan.errors import bad
from longspan.text.files import regular
from longspan.text.files.kinds import AS_THEY_ARE, HEAD, PICTURE, SUFFIXES, kind_of
from longspan.text.files.parsed import Refusal
from longspan.text.files.plain import looks_binary

Report = Callable[[Path, str], None]
"""Called with a path and a reason."""


def walk(
    paths: Iterable[str | os.PathLike[str]],
    *,
    hidden: bool = False,
    pictures: bool = False,
    more: Collection[str] = (),
    skipped: Report | None = None,
    failed: Report | None = None,
) -> Iterator[Path]:
    """The files among `paths`, and the readable files in the folders among them, each once, sorted.

    In folders, hidden files, links to folders, binary files and unknown suffixes are skipped, and pictures if
    not `pictures`; all but hidden ones are reported to `skipped(path, reason)`. Files of `more` suffixes are
    taken as they are. Files and folders that cannot be opened, and pipes and devices among `paths`, are
    reported to `failed`, or to `skipped` if that is None.
    """
    if isinstance(paths, str | os.PathLike):
        raise bad("paths", "a list of paths", str(paths), "Put it into a list.")
    skip = skipped or (lambda path, reason: None)
    fail = failed or skip
    seen: set[str] = set()
    for root in map(Path, paths):
        if not os.path.exists(root):
            raise bad("paths", "files and folders that exist", str(root))
        if not root.is_dir() and not root.is_file():  # whoever opens it might wait forever
            fail(root, regular.SPECIAL)
            continue
        for path in _inside(root, hidden, pictures, more, skip, fail) if root.is_dir() else (root,):
            real = os.path.realpath(path)
            if real in seen:
                skip(path, "it was found before under another name or path")
            else:
                seen.add(real)
                yield path


def _inside(
    folder: Path, hidden: bool, pictures: bool, more: Collection[str], skip: Report, fail: Report
) -> Iterator[Path]:
    """Depth first, without recursion: a deep tree must not fail."""
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        if path is not folder and not path.is_dir():
            try:
                taken = path.suffix.lower() in more and path.is_file()
                reason = None if taken else _reason(path, pictures)
            except OSError as error:
                fail(path, error.strerror or str(error))
                continue
            if reason is None:
                yield path
            else:
                skip(path, reason)
            continue
        if path is not folder and path.is_symlink():
            skip(path, "it is a link to a folder")
            continue
        try:
            names = sorted(os.listdir(path), reverse=True)
        except OSError as error:
            fail(path, error.strerror or str(error))
            continue
        waiting += [path / name for name in names if hidden or not name.startswith(".")]


def _reason(path: Path, pictures: bool) -> str | None:
    """Why a file in a folder is skipped; None if it is not. Raises OSError if it cannot be opened."""
    suffix = path.suffix.lower()
    if not path.is_file():
        return "it is not a regular file, or a link to nothing"
    if suffix and suffix not in SUFFIXES:
        return f"its suffix {suffix} is not known"
    if SUFFIXES.get(suffix) == PICTURE and not pictures:
        return "it is a picture, which only OCR (--ocr) reads"
    try:
        with regular.opened(path) as file:
            head = regular.read(file, HEAD)
            claims = os.fstat(file.fileno()).st_size
        if head and not claims:
            return "it says that it is empty and is not, as files of the system do"
        kind = kind_of(path, head)
    except Refusal as refusal:
        return refusal.reason
    return "it looks binary" if kind in AS_THEY_ARE and looks_binary(head) else None
