"""Whatever the terminal, the pipe or the signal: one line, the right status, never a traceback."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from longspan import cli
from longspan.errors import BackendError, CheckpointError, DocumentError, InputError

PROGRAM = [sys.executable, "-m", "longspan"]


def shell(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which `longspan` is ours."""
    line = command.replace("longspan", f"{sys.executable} -m longspan", 1)
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, errors="replace", env=os.environ | environment
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_crash(closed: str) -> None:
    done = shell(f"longspan models {closed}")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_is_not_mistaken_for_a_stream_that_was_closed(tmp_path: Path) -> None:
    out = tmp_path / "picture.txt"
    assert shell(f"longspan draw window --out {out} >&- 2>&- <&-").returncode == 0
    assert out.read_text() == shell("longspan draw window").stdout.partition(": ")[2].rstrip("\n")


def test_a_full_disk_is_told_in_a_line() -> None:
    done = shell("longspan draw window > /dev/full")
    assert (done.returncode, done.stderr) == (1, "longspan: No space left on device\n")


def test_what_an_encoding_lacks_is_shown_by_its_code() -> None:
    done = shell("longspan draw window", PYTHONIOENCODING="latin-1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u25a0" in done.stdout


def test_a_name_that_is_not_utf8_is_shown(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/caf\xe9.txt"
    done = subprocess.run([*PROGRAM, "encode", name, "--out", "x.npy"], capture_output=True)
    assert done.returncode == 2
    assert b"must be a file or folder that exists" in done.stderr
    assert done.stderr.count(b"\n") == 1


WAITING = """
import os, sys, time
from longspan import cli
from longspan.cli import models

def run(arguments):
    try:
        print("ready", flush=True)
        time.sleep(60)
    finally:
        print("cleaned", flush=True)

models.run = run
sys.argv = ["longspan", "models"]
cli.script()
"""


@pytest.mark.parametrize(
    ("number", "status", "line"),
    [(signal.SIGINT, 130, "longspan: stopped.\n"), (signal.SIGTERM, 143, "longspan: ended by SIGTERM.\n")],
)
def test_a_signal_ends_a_verb_in_one_line(number: int, status: int, line: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        began = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (status, "cleaned\n", line)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (InputError("no."), 2, "longspan: no."),
        (CheckpointError("no."), 4, "longspan: no."),
        (DocumentError("no."), 4, "longspan: no."),
        (BackendError("no."), 1, "longspan: no."),
        (OSError(13, "Permission denied", "a/b"), 1, "longspan: Permission denied: a/b"),
        (MemoryError(), 1, "longspan: there is not enough memory for this."),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 9"), 1, "not enough memory"),
        (ModuleNotFoundError("no", name="transformers"), 1, "`pip install transformers`"),
        (KeyboardInterrupt(), 130, "longspan: stopped."),
        (KeyboardInterrupt("stopped; all is kept."), 130, "longspan: stopped; all is kept."),
        (IndexError("list index"), 70, "a bug in Longspan, please report it: IndexError: list index."),
    ],
)
def test_every_failure_is_one_line_and_a_documented_status(
    error: BaseException,
    status: int,
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(arguments: object) -> int:
        raise error

    monkeypatch.setattr("longspan.cli.models.run", run)
    assert cli.main(["models"]) == status
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
    assert f"\n  {status} " in cli.EXITS


def test_a_bug_shows_its_traceback_if_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longspan.cli.models.run", lambda arguments: [][0])
    assert cli.main(["models", "--verbose"]) == cli.BUG
    assert "Traceback" in capsys.readouterr().err
