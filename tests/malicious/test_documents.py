"""Harmful documents are refused: soon, in little memory, without touching anything else."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from longspan.errors import DocumentError
from longspan.text.documents import Limits, read
from longspan.text.files import process
from malicious import documents
from unit.text import files

WATCHED = r"""
import json, re, sys, time
from pathlib import Path
from longspan.errors import DocumentError
from longspan.text.documents import Limits, read

corpus = Path(sys.argv[1])
(corpus / "good.html").write_text("<p>x")
read(corpus / "good.html")
assert not {"torch", "numpy", "pypdfium2"} & set(sys.modules)

def peak():
    return int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])

Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the imports
before = peak()
read_, times, files = [], [], sorted(p for p in corpus.iterdir() if p.name.startswith(("bad-", "hard-")))
for path in files:
    started = time.perf_counter()
    try:
        read(path, limits=Limits(seconds=3))
        read_.append(path.name)
    except DocumentError as error:
        assert len(str(error)) < 1000, path
    times.append((time.perf_counter() - started, path.name))
times.sort()
found = {"read": read_, "count": len(files), "grown": (peak() - before) / 1024, "slowest": times[-1]}
print(json.dumps(found | {"median": times[len(times) // 2][0]}))
"""
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@LINUX
def test_bombs_and_damaged_files_are_refused(tmp_path: Path, note: Callable[[str], None]) -> None:
    pytest.importorskip("pypdfium2")
    documents.write(tmp_path)
    command = [sys.executable, "-W", "error", "-c", WATCHED, str(tmp_path)]
    found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    (slowest, case), count = found["slowest"], found["count"]
    note(
        f"harmful documents: {count - len(found['read'])} of {count} refused, the rest read within limits; "
        f"slowest {slowest:.1f} s ({case}), median {found['median']:.2f} s, memory +{found['grown']:.0f} MB"
    )
    assert not [name for name in found["read"] if name.startswith("bad-")]
    assert found["grown"] < 50, "MB"
    assert slowest <= 10, "seconds"


def test_a_word_of_50_megabytes_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a" * (50 << 20))
    assert len(read(path)) == 50 << 20


@pytest.mark.parametrize("tag", ["div", "b", "pre", "table", "svg"])
def test_html_may_nest_as_deep_as_it_likes(tmp_path: Path, tag: str) -> None:
    path = tmp_path / "a.html"
    path.write_text("x" + f"<{tag}>" * 20_000 + f"</{tag}>" * 20_000 + "y")
    assert read(path).text.split() in (["x", "y"], ["xy"])


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import os; os.abort()", "ended with SIGABRT"),
        ("raise SystemExit(7)", "ended with status 7"),
        ("pass", "ended with status 0"),
        ("import time; time.sleep(60)", "longer than 1 seconds"),
        ("import os\nwhile True: os.write(1, b'x' * 10**6)", "gave more than"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended with SIGSEGV"),
        ("print('not JSON')", "ended without a sensible answer"),
        ("print('[]')", "ended without a sensible answer"),
    ],
)
def test_whatever_the_parser_does_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, reason: str
) -> None:
    monkeypatch.setattr(process, "PROGRAM", ("-c", program))
    path = tmp_path / "a.html"
    path.write_text("<p>x")
    with pytest.raises(DocumentError, match=reason):
        read(path, limits=Limits(seconds=1, characters=10**6))


@LINUX
@pytest.mark.parametrize(
    ("attempt", "error"),
    [
        ("bytearray(1 << 30)", "MemoryError"),
        ("open('written', 'wb', 0).write(b'x')", "File too large"),
        ("exec('while True: pass')", ""),
    ],
)
def test_a_restricted_process_cannot_take_more(tmp_path: Path, attempt: str, error: str) -> None:
    program = f"from longspan.text.files.child import restrict; restrict(300 << 20, 1); {attempt}"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert run.returncode != 0
    assert error in run.stderr


def test_nothing_is_fetched(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        url = f"http://127.0.0.1:{server.getsockname()[1]}/x"
        tags = f"<link rel=stylesheet href={url}><img src={url}><script src={url}></script><iframe src={url}>"
        (tmp_path / "a.html").write_text(f"x{tags}</iframe>")
        schema = f'<?xml-stylesheet href="{url}"?>'
        (tmp_path / "a.docx").write_bytes(files.docx(files.paragraph("x"), prolog=schema))
        action = f"/OpenAction << /S /URI /URI ({url}) >> /Type /Catalog".encode()
        data = files.pdf(["x"]).replace(b"/Type /Catalog", action)
        (tmp_path / "a.pdf").write_bytes(data)
        for name in ("a.html", "a.docx", "a.pdf"):
            assert read(tmp_path / name).text == "x"
        with pytest.raises(TimeoutError):
            server.accept()
