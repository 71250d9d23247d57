"""Nothing that stands where a file should be makes a program wait."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from longspan.errors import DocumentError
from longspan.search.index import Index
from longspan.search.update import digest
from longspan.text.documents import read
from longspan.text.files import regular
from longspan.text.files.parsed import Refusal
from longspan.text.walk import walk

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and leases")


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    """Fail instead of waiting forever."""

    def late(*_: object) -> None:
        raise AssertionError("waited")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def reasons(folder: Path) -> dict[str, str]:
    told: dict[str, str] = {}
    for path in walk(
        [folder],
        skipped=lambda path, why: told.update({path.name: why}),
        failed=lambda path, why: told.update({path.name: why}),
    ):
        told[path.name] = ""
    return told


@pytest.fixture
def swapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in whose place a pipe stands when it is opened after a look at it."""
    path, open_ = tmp_path / "a.txt", os.open
    path.write_text("text")

    def swap(name: str | Path, *rest: int) -> int:
        if Path(name) == path:
            path.unlink(missing_ok=True)
            os.mkfifo(path)
        return open_(name, *rest)

    monkeypatch.setattr(os, "open", swap)
    return path


@pytest.mark.parametrize("act", [read, digest])
def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(
    swapped: Path, act: Callable[[Path], object]
) -> None:
    with pytest.raises((DocumentError, Refusal), match=regular.SPECIAL):
        act(swapped)


def test_nor_does_a_walk_wait_for_it(swapped: Path) -> None:
    assert reasons(swapped.parent) == {"a.txt": regular.SPECIAL}


def test_an_index_of_a_folder_with_pipes_devices_and_files_of_the_system_is_made(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("the river")
    os.mkfifo(docs / "pipe.txt")
    targets = {"zero.txt": "/dev/zero", "stdin.txt": "/dev/stdin", "kernel.txt": "/proc/kmsg"}
    targets |= {"status.txt": "/proc/self/status", "memory.txt": "/proc/self/mem", "image.txt": "/proc/kcore"}
    for name, target in targets.items():
        (docs / name).symlink_to(target)
    index = Index.open(tmp_path / "index")
    report = index.add(docs, vectors=False, progress=False)
    assert index.files == [docs / "a.txt"]
    assert {path.name for path, _ in (*report.skipped, *report.failed)} == {"pipe.txt", *targets}
    report = index.add([docs / name for name in ("pipe.txt", "zero.txt")], vectors=False, progress=False)
    assert [reason for _, reason in report.failed] == [regular.SPECIAL] * 2


@LINUX
def test_a_file_of_the_system_is_read_when_named_and_has_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path("/proc/self/status")
    assert "Pid:" in read(path).text
    assert digest(path) != digest(Path("/proc/self/cmdline"))
    monkeypatch.setattr(regular, "MOST_UNDECLARED", 1000)
    monkeypatch.setattr(regular, "CHUNK", 100)
    with pytest.raises(OSError, match="does not end"):
        digest(path)


@LINUX
def test_a_file_that_another_program_has_a_lease_on_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("text")
    holder = (
        "import fcntl, os, signal, sys; signal.signal(signal.SIGIO, signal.SIG_IGN); "
        "fd = os.open(sys.argv[1], os.O_RDWR); fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK); "
        "print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", holder, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        if process.stdout.readline() != b"held\n":
            pytest.skip("this file system has no leases")
        with pytest.raises(DocumentError, match="unavailable"):
            read(path)
        with pytest.raises(BlockingIOError):
            digest(path)
        assert "unavailable" in reasons(tmp_path)["a.txt"]
        process.stdin.close()
