"""Pages without text are counted, and recognized if the user asks and tesseract is installed."""

import os
import stat
import sys
import time
from pathlib import Path

import pytest

from longspan.errors import DocumentError, InputError
from longspan.search.index import Index
from longspan.text.documents import Document, Limits, read, read_many
from longspan.text.walk import walk
from unit.text import files

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="the program is a script")
SPY = """#!{python}
import os, sys
picture = sys.stdin.buffer.read()
print(sys.argv[1:], picture[:2].decode("latin-1"), len(picture) > 1000, sorted(os.environ)[:1])
print("1. Recognized")
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Put a program named tesseract first in the path."""
    path = folder / "bin" / "tesseract"
    path.parent.mkdir()
    path.write_text(program.format(python=sys.executable))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    """A PDF of a page with text, a page with a drawing and a blank page."""
    pytest.importorskip("pypdfium2")
    data = files.pdf(["text", "DRAWING", "", "more"])
    old = data[data.index(b"BT /F 12 Tf", data.index(b"DRAWING") - 60) : data.index(b"DRAWING")]
    drawing = b"9 9 99 99 re f".ljust(len(old) + len(b"DRAWING) Tj T* ET"))
    path = tmp_path / "scan.pdf"
    path.write_bytes(data.replace(old + b"DRAWING) Tj T* ET", drawing))
    return path


def test_pages_that_show_something_without_text_are_counted(scan: Path) -> None:
    document = read(scan)
    assert (document.text, document.empty_pages) == ("text\n\n\n\n\n\nmore", 1)
    assert document.gap == "has no text on 1 of 4 pages; try --ocr"
    assert Document("text").gap == ""


@POSIX
def test_a_scan_with_a_stamp_on_it_is_a_page_without_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pypdfium2")
    picture = b"q 612 0 0 792 0 0 cm BI /W 1 /H 1 /BPC 8 /CS /G ID \x80 EI Q "
    data = files.pdf(["a page of text", "ACME 000017"]).replace(
        b"BT /F 12 Tf 72 720 Td 24 TL /F 12 Tf (ACME", b"@"
    )
    start, end = data.index(b"@"), data.index(b"endstream", data.index(b"@"))
    content = picture + b"BT /F 12 Tf 72 720 Td (ACME 000017) Tj ET"
    body = data[: data.rindex(b"<<", 0, start)] + files.stream(content)
    path = tmp_path / "a.pdf"
    path.write_bytes(body + data[end + len(b"endstream") :])
    document = read(path)
    assert document.text == "a page of text\n\nACME 000017"
    assert document.gap == "has no text on 1 of 2 pages; try --ocr"
    install(tmp_path, monkeypatch, SPY)
    document = read(path, ocr=True)
    assert "Recognized" in document.text[document.pages[1] :]
    assert document.gap == ""


@POSIX
def test_only_pages_without_text_are_recognized(
    scan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, SPY)
    monkeypatch.setenv("A_SECRET", "x")
    document = read(scan, ocr="eng+deu")
    assert document.text.startswith("text\n\n['stdin', 'stdout', '-l', 'eng+deu'] P5 True ")
    assert "A_SECRET" not in document.text
    assert document.text.endswith("1. Recognized\n\n\n\nmore")
    assert document.page_of(document.text.index("Recognized")) == 2
    assert (document.empty_pages, document.gap) == (0, "")


@POSIX
def test_a_picture_is_read_only_if_the_user_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, SPY)
    path = tmp_path / "a.png"
    path.write_bytes(b"\x89PNG" + b"\0" * 2000)
    with pytest.raises(
        DocumentError, match=r"it is a picture. Read it with OCR: --ocr, or ocr=True in Python"
    ):
        read(path)
    (document,) = read_many([path], ocr=True)
    assert isinstance(document, Document)
    assert document.kind == "picture"
    assert "Recognized" in document.text
    assert list(walk([tmp_path / "bin", tmp_path], pictures=True))[-1] == path
    assert path not in walk([tmp_path])


@POSIX
@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("#!/bin/sh\necho 'no such language' >&2; exit 1", "tesseract failed .no such language"),
        ("#!/nowhere/python\n", "could not be started"),
        ("#!/bin/sh\nhead -c 999999 /dev/zero", "more than 1,000 characters"),
    ],
)
def test_a_program_that_fails_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, reason: str
) -> None:
    install(tmp_path, monkeypatch, program)
    (tmp_path / "a.jpg").write_bytes(b"x")
    with pytest.raises(DocumentError, match=reason):
        read(tmp_path / "a.jpg", ocr=True, limits=Limits(characters=1000))


@POSIX
def test_a_program_that_hangs_is_ended_with_the_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive = tmp_path / "alive"
    install(tmp_path, monkeypatch, f"#!/bin/sh\nsleep 4; rm {alive}")
    alive.touch()
    (tmp_path / "a.jpg").write_bytes(b"x")
    with pytest.raises(DocumentError, match=r"took longer than 2 seconds"):
        read(tmp_path / "a.jpg", ocr=True, limits=Limits(seconds=1, ocr_seconds=1))
    time.sleep(4)
    assert alive.exists()


def test_without_tesseract_the_error_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "a.tiff").write_bytes(b"x")
    with pytest.raises(DocumentError, match="apt install tesseract-ocr, or brew install tesseract"):
        read(tmp_path / "a.tiff", ocr=True)


@pytest.mark.parametrize("wrong", ["", "-x", "eng; rm", "../eng", 7])
def test_languages_are_names(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(InputError, match=r'languages such as "eng\+deu"'):
        read(tmp_path / "a.png", ocr=wrong)


@POSIX
def test_an_index_reads_scanned_pages_and_pictures_again_when_the_user_asks(
    scan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, SPY)
    docs = tmp_path / "docs"
    docs.mkdir()
    scan.rename(docs / "scan.pdf")
    (docs / "plain.pdf").write_bytes(files.pdf(["one more line\n" * 9, "two more lines\n" * 9]))
    (docs / "a.png").write_bytes(b"\x89PNG" + b"\0" * 2000)
    with Index.open(tmp_path / "index") as index:
        report = index.add(docs, vectors=False)
        assert [path.name for path, _ in report.gaps] == ["scan.pdf"]
        assert [path.name for path, _ in report.skipped] == ["a.png"]
        assert not index.search("recognized", mode="bm25")
        report = index.add(docs, vectors=False, ocr=True)
        assert (report.added, report.changed, report.unchanged, report.gaps) == (1, 1, 1, [])
        hits = index.search("recognized", mode="bm25")
        assert {(hit.file.name, hit.answer_page) for hit in hits} == {("scan.pdf", 2), ("a.png", None)}
        for ocr in (True, False):
            assert index.add(docs, vectors=False, ocr=ocr).unchanged == 2 + ocr
        os.utime(docs / "scan.pdf", (0, 0))
        (docs / "copy.pdf").write_bytes((docs / "scan.pdf").read_bytes())
        assert index.add(docs, vectors=False).changed == 0
        assert len(index.search("recognized type:pdf", mode="bm25")[0].same) == 1
        index.verify()


@POSIX
def test_what_a_failing_recognition_cannot_read_again_stays_in_the_index(
    scan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "#!{python}\nraise SystemExit(1)\n")
    with Index.open(tmp_path / "index") as index:
        index.add(scan, vectors=False)
        assert [path for path, _ in index.add(scan, vectors=False, ocr=True).failed] == [scan]
        assert index.search("more", mode="bm25")
