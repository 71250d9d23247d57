"""A warm process for searches, and how to talk to it: one JSON message each way over a private socket.

The socket lies in a folder that only the user may enter, and both sides ask the system who the other is. The
client needs neither torch nor numpy; whenever anything is not as it should be, it gives up, and the caller
searches in the ordinary way.
"""

import hashlib
import json
import os
import socket
import stat
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from longspan._version import __version__
from longspan.errors import LongspanError
from longspan.hub import cache_folder
from longspan.search.request import Reply, Request

MINUTES = 10
"""How long a process waits for the next query, unless the user says otherwise."""
LIMIT = 1 << 26
"""Bytes of a message at most."""
CONNECT, ANSWER = 1.0, 60.0
"""Seconds that a client waits for the connection, and for the answer."""
LONGEST_PATH = 100
"""Bytes that the path of a socket may have on every system."""


def supported() -> bool:
    """Whether this system has what a warm process needs."""
    return hasattr(socket, "AF_UNIX") and hasattr(os, "getuid")


def run_folder(create: bool = False) -> Path:
    """The folder of the sockets, which nobody else may enter; an error if somebody else could."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(runtime) / "longspan" if runtime and Path(runtime).is_dir() else cache_folder() / "run"
    if len(os.fsencode(folder)) > LONGEST_PATH - 24:
        mark = hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]
        folder = Path(tempfile.gettempdir()) / f"longspan-{os.getuid()}-{mark}"
    if create:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise LongspanError(f"`{folder}` must be a folder that only you may enter (chmod 700).")
    return folder


def identity(index: Path, model: str | None, adapter: str | None = None) -> dict[str, str]:
    """What a warm process is for; another version, index, model or adapter has a process of its own."""
    own = {"version": __version__, "index": str(index.resolve()), "model": model or ""}
    return own | {"adapter": adapter or ""}


def socket_path(own: dict[str, str], create: bool = False) -> Path:
    """The socket of the process for an identity."""
    mark = hashlib.sha256(json.dumps(own, sort_keys=True).encode("utf-8", "surrogateescape")).hexdigest()
    return run_folder(create) / f"{mark[:16]}.sock"


def ask(own: dict[str, str], request: Request, minutes: int) -> Reply | None:
    """The answer of a warm process, which then waits for some minutes; None if there is no answer."""
    with suppress(OSError, LongspanError):
        reply = exchange(socket_path(own), {"identity": own, "request": asdict(request), "minutes": minutes})
        if reply is not None and "reply" in reply:
            with suppress(TypeError):
                return Reply(**reply["reply"])
    return None


def stop_all() -> int:
    """End all warm processes of the user, and say how many there were."""
    if not supported():
        return 0
    with suppress(OSError, LongspanError):
        return sum(exchange(path, {"stop": True}) is not None for path in sorted(run_folder().glob("*.sock")))
    return 0


def start(index: Path, model: str | None, minutes: int, adapter: str | None = None) -> None:
    """Start a warm process that has nothing to do with this terminal; it takes a few seconds to be ready."""
    run_folder(create=True)
    # -P: what lies in the current folder is not imported.
    command = [
        sys.executable,
        "-P",
        "-m",
        "longspan.search.keep_server",
        str(index),
        model or "",
        str(minutes),
        adapter or "",
    ]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    process.returncode = 0  # nobody waits for it, nor warns that nobody did


def exchange(path: Path, message: dict[str, Any]) -> dict[str, Any] | None:
    """Send a message and wait for the answer; None if nobody is there, or the one there is not the user."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(CONNECT)
        try:
            connection.connect(os.fspath(path))
            if not is_own(connection):
                return None
            connection.settimeout(ANSWER)
            send(connection, message)
            return receive(connection)
        except (OSError, ValueError):
            return None


def send(connection: socket.socket, message: dict[str, Any]) -> None:
    """Write a message: its length in 4 bytes, then JSON."""
    data = json.dumps(message).encode()
    if len(data) > LIMIT:
        raise ValueError("the message is too long")
    connection.sendall(struct.pack("<I", len(data)) + data)


def receive(connection: socket.socket) -> dict[str, Any]:
    """Read a message; a ValueError for one that is none."""
    (size,) = struct.unpack("<I", b"".join(_read(connection, 4)))
    if size > LIMIT:
        raise ValueError("the message is too long")
    message = json.loads(b"".join(_read(connection, size)))
    if not isinstance(message, dict):
        raise ValueError("the message is not an object")
    return message


def _read(connection: socket.socket, size: int) -> Iterator[bytes]:
    while size:
        data = connection.recv(min(size, 1 << 16))
        if not data:
            raise ValueError("the message ends early")
        size -= len(data)
        yield data


def is_own(connection: socket.socket) -> bool:
    """Whether the other side is a process of the same user, as far as the system tells."""
    if hasattr(socket, "SO_PEERCRED"):  # Linux
        size = struct.calcsize("3i")
        _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        return bool(user == os.getuid())
    if sys.platform == "darwin":
        _, user = struct.unpack("2I", connection.getsockopt(0, 1, 8))  # LOCAL_PEERCRED: version, user
        return bool(user == os.getuid())
    return True  # the folder keeps others out
