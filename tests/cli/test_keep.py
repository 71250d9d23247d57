"""`longspan search --keep`: a warm process that only its user can talk to."""

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.test_search import told
from longspan.errors import LongspanError
from longspan.search import keep, keep_server
from longspan.search.index import Index
from longspan.search.library import place
from longspan.search.request import Reply, Request
from unit.search.folders import filled

pytestmark = pytest.mark.skipif(not keep.supported(), reason="there are no Unix domain sockets")
OPTIONS = ("--mode", "bm25", "--top", "1")


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    runtime = tempfile.mkdtemp()  # the path of a socket must be short
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    monkeypatch.setenv("LONGSPAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(keep_server, "POLL", 0.05)
    filled(tmp_path / "docs", 3)
    with Index.open(place(None, None)) as index:
        index.add("docs", vectors=False)
    yield
    keep.stop_all()
    shutil.rmtree(runtime)


def warm(minutes: float = 1.0) -> threading.Thread:
    """The loop of a warm process for the default index, as a thread."""
    folder = place(None, None)
    own = keep.identity(folder, None)
    path = keep.socket_path(own, create=True)

    def run() -> None:
        with Index.open(folder) as index, keep_server.listening(path) as door:
            keep_server.serve(door, index, own, minutes * 60)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while not path.exists():
        time.sleep(0.01)
    return thread


def request(query: str = "Rome") -> Request:
    return Request(queries=[query], mode="bm25", here=os.getcwd())


def asked(query: str = "Rome") -> Reply | None:
    return keep.ask(keep.identity(place(None, None), None), request(query), 1)


def test_a_warm_process_answers_as_the_ordinary_way(capsys: pytest.CaptureFixture[str]) -> None:
    ordinary = told(capsys, "search", "Rome", *OPTIONS)
    thread = warm()
    assert told(capsys, "search", "--keep", "Rome", *OPTIONS) == ordinary
    assert (
        told(capsys, "search", "zebra", "--keep", "5", *OPTIONS, status=1)[0] == "nothing found for 'zebra'\n"
    )
    Path("docs/new.txt").write_text("A zebra walks.")
    assert "1. docs/new.txt:1" in told(capsys, "search", "zebra", "docs", "--keep", *OPTIONS, status=None)[0]
    told(capsys, "search", "--stop-keep")
    thread.join(5)
    assert not thread.is_alive()
    assert asked() is None


def test_the_client_needs_neither_torch_nor_numpy() -> None:
    warm()
    program = (
        "import sys; from longspan.cli import main; status = main(sys.argv[1:]);"
        "assert not {'torch', 'numpy'} & set(sys.modules); sys.exit(status)"
    )
    command = [sys.executable, "-c", program, "search", "--keep", "Rome", *OPTIONS]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout[:8]) == (0, "1. docs/"), done.stderr


def test_without_a_warm_process_one_is_started_behind_the_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[object, ...]] = []
    monkeypatch.setattr(keep, "start", lambda *arguments: started.append(arguments))
    assert "1. docs/" in told(capsys, "search", "Rome", "--keep", "3", *OPTIONS)[0]
    assert started == [(place(None, None), None, 3, None)]
    told(capsys, "search", "Rome", "--keep", "0", *OPTIONS)
    assert len(started) == 1


def test_another_version_or_index_is_declined() -> None:
    warm()
    own = keep.identity(place(None, None), None)
    for other in (own | {"version": "0"}, own | {"index": "/"}, own | {"model": "x"}):
        reply = keep.exchange(keep.socket_path(own), {"identity": other, "request": {"queries": ["Rome"]}})
        assert reply == {"declined": "another version, index or model"}
    assert asked() is not None


def test_nonsense_is_survived() -> None:
    warm()
    path = str(keep.socket_path(keep.identity(place(None, None), None)))
    for data in (b"", b"x", struct.pack("<I", keep.LIMIT + 1), struct.pack("<I", 2) + b"[]", b"\4\0\0\0{{{{"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(data)
    assert keep.exchange(Path(path), {"identity": None}) == {"declined": "another version, index or model"}
    own = keep.identity(place(None, None), None)
    assert "declined" in (keep.exchange(Path(path), {"identity": own, "request": {"nothing": 1}}) or {})
    assert "declined" in (keep.exchange(Path(path), {"identity": own, "request": {"queries": [" "]}}) or {})
    assert asked() is not None


def test_others_are_not_talked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    warm()
    path = keep.socket_path(keep.identity(place(None, None), None))
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with monkeypatch.context() as patch:
        patch.setattr(keep_server, "is_own", lambda connection: False)
        assert asked() is None
    assert asked() is not None
    uid = os.getuid()
    with monkeypatch.context() as patch:
        patch.setattr(keep, "is_own", lambda connection: False)  # somebody else listens
        assert asked() is None
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: uid + 1)  # the folder is somebody else's
        assert asked() is None
        with pytest.raises(LongspanError, match="only you may enter"):
            keep.run_folder()
    path.parent.chmod(0o755)
    assert asked() is None
    path.parent.chmod(0o700)


def test_it_ends_when_it_is_idle_or_the_index_is_gone(tmp_path: Path) -> None:
    idle = warm(0.005)
    idle.join(10)
    assert not idle.is_alive()
    thread = warm()
    assert asked() is not None
    shutil.rmtree(tmp_path / "cache")
    thread.join(10)
    assert not thread.is_alive()


def test_a_socket_that_a_killed_process_left_behind_is_replaced() -> None:
    path = keep.socket_path(keep.identity(place(None, None), None), create=True)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
    assert asked() is None
    path.unlink()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
    with keep_server.listening(path) as door:
        assert door.getsockname() == str(path)
    assert not path.exists()


@pytest.mark.slow
def test_a_real_process_is_started_answers_and_is_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    ordinary = told(capsys, "search", "Rome", "--keep", *OPTIONS)
    deadline = time.monotonic() + 120
    while asked() is None and time.monotonic() < deadline:
        time.sleep(0.2)
    assert told(capsys, "search", "Rome", "--keep", *OPTIONS) == ordinary
    assert keep.stop_all() == 1
    assert json.dumps(asked()) == "null"
