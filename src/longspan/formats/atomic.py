"""Files written whole or not at all: one, or those of a folder together, whenever the process is killed.

The files of a folder are written into a hidden folder inside it, which is renamed when all of them are on the
disk: from then on they are the folder's. What is left to do is a list of renames, in an order by which other
programs find the old files, the new ones, or no `last` one; whoever opens the folder next finishes it.
"""

import errno
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from threading import get_ident
from typing import Any

from longspan.errors import LongspanError, refused
from longspan.formats.files import read_json

READY = ".longspan-save"
"""The hidden folder when it is complete; before that its name goes on."""
PLAN = ".plan.json"
POLL, PATIENCE = 0.02, 600.0
"""Seconds between two looks at a lock, and in all: a model is loaded in less."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NAME = re.compile(r"(\d{1,3}_\w{1,80}/)?\w[\w.-]{0,199}", re.ASCII)

Owns = Callable[[str], object]


@contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """A new file beside `path`, to be written inside the block, that takes its place at the end."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{get_ident()}.tmp")
    try:
        with telling_full(path):
            yield temporary
            flush(temporary)
            os.replace(temporary, path)
            flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a file in one step, so that a crash leaves the old one or the new one."""
    with replaced_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


@contextmanager
def replaced_files(folder: Path, *, owns: Owns, last: str) -> Iterator[Path]:
    """A new folder, to be filled inside the block, whose files replace those of `folder` at the end.

    Files of the folder that `owns` is true of are replaced or removed, all others are kept. Without the file
    `last` nobody can read the rest: it is removed first and put into place last. An error inside the block
    changes nothing.
    """
    folder = folder.expanduser().absolute()
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with temporary_folder(folder, f"{READY}-") as fresh, telling_full(folder):
            yield fresh
            _commit(folder, fresh, owns, last)
    except BaseException:
        if is_new:
            with suppress(OSError):  # another process has saved there, too
                folder.rmdir()
        raise


@contextmanager
def temporary_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder that is gone at the end, and with the next one of this prefix if the process is killed."""
    with ExitStack() as lock:
        with _locked(parent):
            _remove_dead(parent, prefix)
            folder = Path(mkdtemp(dir=parent, prefix=prefix))
            lock.enter_context(_locked(folder, shared=True))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def settled(folder: Path) -> Iterator[None]:
    """Inside the block no save puts files into the folder; one that was interrupted is finished before."""
    if (folder / READY).is_dir():
        try:
            with _locked(folder):
                _finish(folder)
        except OSError as error:
            repair = "Make the folder writable and load it again: it finishes by itself."
            raise refused(
                folder, f"saving it was interrupted, and {READY} cannot be put into place ({error})", repair
            ) from error
    with _locked(folder, shared=True):
        yield


@contextmanager
def locked(folder: Path, otherwise: str) -> Iterator[None]:
    """Inside the block no other process may do the same to a folder; one that tries is told so at once."""
    with ExitStack() as stack:
        try:
            stack.enter_context(_locked(folder, wait=0))
        except LongspanError:
            raise LongspanError(f"The folder `{folder}` {otherwise}.") from None
        yield


def flush(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # where folders cannot be opened
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _commit(folder: Path, fresh: Path, owns: Owns, last: str) -> None:
    """Make what was written the folder's."""
    files = sorted(_files(fresh), key=lambda name: (name == last, name))
    with _locked(folder):
        _finish(folder)  # what another process left behind
        old = {name for name in _files(folder) if owns(name)}
        plan = {"files": files, "remove": sorted(old - {*files}), "last": last}
        (fresh / PLAN).write_text(json.dumps(plan, indent=2) + "\n")
        for path in (*fresh.rglob("*"), fresh):
            flush(path)
        os.rename(fresh, folder / READY)  # which decides it
        flush(folder)
        _finish(folder)


def _finish(folder: Path) -> None:
    """Put the files of a decided save into their places, as often as it takes."""
    ready = folder / READY
    if ready.is_symlink():
        raise refused(ready, "it is a link", "Remove it.")
    if not ready.is_dir():
        return
    if (ready / PLAN).is_file():
        files, remove, last = _plan(ready)
        if last in files and (ready / last).exists():
            (folder / last).unlink(missing_ok=True)
            flush(folder)
        for name in remove:
            (folder / name).unlink(missing_ok=True)
        for name in files:
            if name == last:
                flush(folder)
            if (ready / name).exists():
                (folder / name).parent.mkdir(exist_ok=True)
                os.replace(ready / name, folder / name)
        for inner in {(folder / name).parent for name in (*files, *remove)} - {folder}:
            with suppress(OSError):  # which is not empty
                inner.rmdir()
        flush(folder)
    shutil.rmtree(ready)


def _plan(ready: Path) -> tuple[list[str], list[str], str]:
    """What is to be done, of plain names only: a folder may come from anywhere."""
    match read_json(ready / PLAN):
        case {"files": list(files), "remove": list(remove), "last": str(last)}:
            for name in (*files, *remove, last):
                plain = isinstance(name, str) and _NAME.fullmatch(name)
                if not plain or any((home / name).parent.is_symlink() for home in (ready, ready.parent)):
                    raise refused(ready, f"it names the file {str(name)[:200]!r}", f"Remove {ready}.")
            return files, remove, last
    raise refused(ready / PLAN, "it is no plan of a save", f"Remove {ready}.")


def _files(folder: Path) -> Iterator[str]:
    """The names of a model's files: those of the folder, and of folders such as 1_Pooling."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
            yield from (f"{path.name}/{inner.name}" for inner in path.iterdir() if not inner.is_dir())
        elif not path.is_dir():
            yield path.name


def _remove_dead(parent: Path, prefix: str) -> None:
    """Remove what killed processes were writing: a living one holds the lock."""
    for path in parent.glob(f"{prefix}*"):
        with suppress(OSError, LongspanError), _locked(path, wait=0):
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _locked(folder: Path, *, shared: bool = False, wait: float = PATIENCE) -> Iterator[None]:
    """Hold the lock of a folder, which the system frees when the process ends; none where there are none."""
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    deadline = time.monotonic() + wait
    try:
        while True:
            try:
                fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES):
                    break  # a file system without locks
            if time.monotonic() >= deadline:
                raise LongspanError(f"The folder `{folder}` is being saved by another process. Try again.")
            time.sleep(POLL)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def telling_full(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        repair = "Make room on the disk and save again: what was there is unchanged."
        raise LongspanError(f"`{place}` cannot be written: {error.strerror}. {repair}") from error


def as_json(value: Any) -> str:
    """The text of a JSON file, as all of ours are written."""
    return json.dumps(value, indent=2) + "\n"
