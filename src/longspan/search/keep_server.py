"""The warm process, `... keep_server INDEX MODEL MINUTES ADAPTER`, answers until it is idle."""

import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from longspan.errors import LongspanError
from longspan.search.database import database_of
from longspan.search.index import Index
from longspan.search.keep import identity, is_own, receive, send, socket_path
from longspan.search.lock import Busy, writing
from longspan.search.request import Request, answer, check

POLL = 1.0
"""Seconds between two looks at whether the index is still there."""
PATIENCE = 5.0
"""Seconds that a client may take to send its message."""
WAIT = 0.5
"""Seconds to wait for another process that changes the index."""


def main(folder: Path, model: str | None, minutes: float, adapter: str | None = None) -> int:
    """Answer queries about one index until nobody has asked for some minutes, or the index is gone."""
    sys.path[:] = map(os.path.abspath, sys.path)
    own = identity(folder, model, adapter)
    path = socket_path(own, create=True)
    guard = path.with_suffix("")
    guard.mkdir(mode=0o700, exist_ok=True)
    try:
        with writing(guard, 0.0), Index.open(folder, model, adapter=adapter) as index:
            os.chdir(path.parent)  # so that no other folder is held
            if index.share_read:
                index.search("warm", 1)
            with listening(path) as door:
                serve(door, index, own, minutes * 60)
    except Busy:  # another process is warm already
        pass
    return 0


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """A socket that only the user may connect to; one that a killed process left there is replaced."""
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as door:
        mask = os.umask(0o077)
        door.bind(os.fspath(path))
        os.umask(mask)
        try:
            door.listen()
            yield door
        finally:
            path.unlink(missing_ok=True)


def serve(door: socket.socket, index: Index, own: dict[str, str], idle: float) -> None:
    """Answer one client after the other."""
    door.settimeout(POLL)
    unchanged = same_index(index)
    deadline = time.monotonic() + idle
    while time.monotonic() < deadline and unchanged():
        try:
            connection, _ = door.accept()
        except TimeoutError:
            continue
        with connection:
            connection.settimeout(PATIENCE)
            try:
                if not is_own(connection):
                    continue
                message = receive(connection)
                if message.get("stop"):
                    send(connection, {"stopped": True})
                    return
                if not unchanged():
                    return
                idle = max(POLL, 60 * float(message.get("minutes", idle / 60)))
                send(connection, respond(index, own, message))
            except (OSError, TypeError, ValueError):  # the client has gone, or speaks another language
                continue
        deadline = time.monotonic() + idle


def same_index(index: Index) -> Callable[[], bool]:
    """Whether the index is still the one that was opened, built with the same model."""

    def state() -> tuple[int, int, str | None] | None:
        try:
            status = database_of(index.folder).stat()
            return status.st_dev, status.st_ino, index._store.db.get("fingerprint")
        except (OSError, LongspanError):
            return None

    first = state()
    return lambda: first is not None and state() == first


def respond(index: Index, own: dict[str, str], message: dict[str, Any]) -> dict[str, Any]:
    """The reply to a request, or why the client has to search itself."""
    if message.get("identity") != own:
        return {"declined": "another version, index or model"}
    try:
        request = Request(**message["request"])
        check(request)
        report = index.add(request.paths, vectors=False, progress=False, wait=WAIT) if request.paths else None
        if report is not None and (report.failed or report.missing):
            return {"declined": "some files cannot be read"}
        reply = answer(index, request, report)
        unread = reply.read < 1 and not request.now
        return {"declined": "the model has not read all"} if unread else {"reply": asdict(reply)}
    except (LongspanError, OSError, KeyError, TypeError, ValueError) as error:
        return {"declined": str(error)}


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2] or None, float(sys.argv[3]), sys.argv[4] or None))
