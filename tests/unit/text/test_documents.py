"""Files become text with offsets, pages and lines; what is not read says why."""

import codecs
import io
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from operator import length_hint
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.errors import DocumentError, InputError
from longspan.text.documents import Document, Limits, read, read_each, read_many
from longspan.text.files import parsed, pdf, plain
from unit.text import files

Save = Callable[[str, bytes | str], Path]
NOTES = "# The title #\n\nFirst line.\r\nSecond, with NUL \0 and \ufffd.\n"


@pytest.fixture
def saved(tmp_path: Path) -> Save:
    def save(name: str, data: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return save


def test_plain_text_is_kept_to_the_last_character(saved: Save) -> None:
    document = read(saved("notes.md", NOTES))
    assert document.text == NOTES
    assert (document.kind, document.title, document.replaced, document.pages) == (
        "markdown",
        "The title",
        0,
        (),
    )
    assert document.line_of(NOTES.index("Second")) == 4
    assert document.page_of(0) is None


@pytest.mark.parametrize(
    ("mark", "codec"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (b"", "utf-8"),
    ],
)
def test_a_byte_order_mark_names_the_encoding_and_is_no_text(saved: Save, mark: bytes, codec: str) -> None:
    assert read(saved("a.txt", mark + "naïve 中文 👩".encode(codec))).text == "naïve 中文 👩"


def test_invalid_bytes_are_replaced_and_counted(saved: Save) -> None:
    document = read(saved("a.txt", b"caf\xe9 \xff and a real \xef\xbf\xbd \xed\xa0\x80"))
    assert document.text.startswith("caf\ufffd \ufffd and")
    assert document.replaced == document.text.count("\ufffd") - 1 == 5
    odd = read(saved("b.txt", codecs.BOM_UTF16_LE + b"\x00\xd8a\x00b"))
    assert odd.text == "\ufffda\ufffd"
    assert odd.replaced == 2


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "README"])
def test_an_empty_file_is_an_empty_document(saved: Save, name: str) -> None:
    assert read(saved(name, b"")).text == ""


def test_html_becomes_what_a_browser_shows(saved: Save) -> None:
    page = (
        "<!doctype html><title> A\n&amp; B</title><style>p {}</style><script>if (1 < 2) no()</script>"
        "<h1>Top</h1><p>One  <b>t</b>wo<br>three &eacute;&#x4e2d;<!-- no --><svg><text>no</text></svg>"
        "<ul><li>a<li>b</ul><table><tr><td>c<td>d<tr><td>e</table><pre>  f\n  g</pre>"
        "<![weird[ no ]><img src='http://192.0.2.1/x'>end"
    )
    document = read(saved("a.html", page))
    assert document.text == "Top\n\nOne two\nthree é中\n\na\nb\n\nc\td\ne\n\n  f\n  g\n\nend"
    assert (document.kind, document.title) == ("html", "A & B")


@pytest.mark.parametrize(
    "charset", ["windows-1252", "ISO-8859-1", "nonsense", "zip", "utf-7", "unicode_escape"]
)
def test_html_may_name_an_encoding_and_else_is_looked_at(saved: Save, charset: str) -> None:
    document = read(saved("a.html", f'<meta charset="{charset}">'.encode() + b"caf\xe9"))
    assert (document.text, document.replaced) == ("café", 0)


def test_a_word_document_gives_paragraphs_tables_notes_and_its_title(saved: Save) -> None:
    cell = "<w:tc>{}</w:tc>".format
    table = f"<w:tbl><w:tr>{cell(files.paragraph('a'))}{cell(files.paragraph('b'))}</w:tr></w:tbl>"
    twice = "<AlternateContent><Choice>{0}</Choice><Fallback>{0}</Fallback></AlternateContent>"
    body = (
        files.paragraph("One &amp; two")
        + "<w:p><w:t>th</w:t><w:delText>no</w:delText><w:t>ree</w:t><w:br/><w:t>four</w:t></w:p>"
        + table
        + twice.format(files.paragraph("box"))
    )
    notes = f"<w:footnotes {files.NAMESPACE}>{files.paragraph('a note')}</w:footnotes>"
    document = read(saved("a.docx", files.docx(body, "My title", more={"word/footnotes.xml": notes})))
    assert document.text == "One & two\n\nthree\nfour\n\na\tb\n\nbox\n\na note"
    assert (document.kind, document.title, document.pages) == ("docx", "My title", ())


def test_a_word_document_may_call_its_text_otherwise(saved: Save) -> None:
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    members = {
        "_rels/.rels": f'<x><Relationship Type="{kind}" Target="/word/document2.xml"/></x>',
        "word/document2.xml": f"<w:document {files.NAMESPACE}>{files.paragraph('here')}</w:document>",
    }
    assert read(saved("a.docx", files.zipped(members))).text == "here"


def test_a_pdf_gives_its_pages_and_every_offset_its_page(saved: Save) -> None:
    pytest.importorskip("pypdfium2")
    pages = ["first page", "second page\nwith two lines", "", "the last one"]
    document = read(saved("a.pdf", files.pdf(pages, "A PDF")))
    assert (document.kind, document.title, len(document.pages)) == ("pdf", "A PDF", 4)
    for number, page in enumerate(pages, 1):
        assert document.text[document.pages[number - 1] :].startswith(page)
        assert document.page_of(document.pages[number - 1]) == number
    assert document.page_of(document.text.index("two lines")) == 2
    assert document.page_of(len(document.text)) == 4


def test_a_pdf_without_text_is_no_empty_document(saved: Save) -> None:
    pytest.importorskip("pypdfium2")
    with pytest.raises(DocumentError, match=r"none of its 2 pages holds text.*OCR"):
        read(saved("scan.pdf", files.pdf(["", ""])))


def test_without_the_extra_a_pdf_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(parsed.Refusal) as caught:
        pdf.parse(io.BytesIO(files.pdf(["x"])), 100)
    assert caught.value.repair == "Install it: pip install longspan[pdf]"


def test_without_a_suffix_the_first_bytes_decide(saved: Save) -> None:
    assert read(saved("LICENSE", "Apache")).kind == "text"
    assert read(saved("page", "\n<!DOCTYPE html><p>x")).text == "x"
    with pytest.raises(DocumentError, match="not text, nor of a format"):
        read(saved("program", b"\x7fELF\0\0"))


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(bytes=10), "more than 10"),
        (Limits(characters=10), "more than 10 characters"),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.html", "a.docx", "a.pdf"])
def test_limits_hold_for_every_kind(saved: Save, name: str, limits: Limits, reason: str) -> None:
    text = "more than ten characters"
    data = {"a.docx": files.docx(files.paragraph(text)), "a.pdf": files.pdf([text])}
    if name == "a.pdf":
        pytest.importorskip("pypdfium2")
    with pytest.raises(DocumentError, match=reason):
        read(saved(name, data.get(name, text.encode())), limits=limits)


@pytest.mark.parametrize("wrong", [{"bytes": 0}, {"memory": 1.5}, {"seconds": 0}, {"seconds": float("nan")}])
def test_limits_are_positive_numbers(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        Limits(**wrong)  # type: ignore[arg-type]


def test_many_files_come_in_order_with_errors_in_their_places(saved: Save, tmp_path: Path) -> None:
    good = [saved(f"{i}.txt", str(i)) for i in range(12)]
    found = list(read_many([*good[:5], tmp_path / "absent.txt", *good[5:]]))
    assert isinstance(found[5], DocumentError)
    texts = [item.text for item in found if isinstance(item, Document)]
    assert texts == [str(i) for i in range(12)]


@pytest.mark.parametrize(("ahead", "begun"), [(0, 5), (1 << 20, 12)])
def test_files_are_read_ahead_by_their_sizes(saved: Save, ahead: int, begun: int) -> None:
    paths = iter([saved(f"{i}.txt", str(i)) for i in range(12)])
    results = read_each(paths, len, ahead=ahead)
    assert next(results) == 1
    assert length_hint(paths) == 12 - begun
    assert list(results) == [1] * 9 + [2] * 2


def test_to_stop_reading_ends_the_parsers_at_once(saved: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    sleeping = "import os, sys, time; open(sys.argv[2], 'w').write(str(os.getpid())); time.sleep(600)"
    names = iter([str(saved(f"pid{i}", "")) for i in range(3)])
    started = subprocess.Popen

    def slow(command: list[str], **options: Any) -> Any:
        return started([command[0], "-c", sleeping, "", next(names)], **options)

    monkeypatch.setattr("longspan.text.files.process.subprocess.Popen", slow)
    results = read_each([saved("0.txt", "x"), *(saved(f"{i}.html", "<p>x") for i in range(3))], len)
    assert next(results) == 1
    noted = [path for path in saved("0.txt", "x").parent.iterdir() if path.name in ("pid0", "pid1")]
    while not all(path.read_text() for path in noted):
        time.sleep(0.01)
    began = time.perf_counter()
    results.close()
    assert time.perf_counter() - began < 5
    for path in noted:
        while os.path.exists(f"/proc/{path.read_text()}"):  # reaped by the thread that waits for it
            assert time.perf_counter() - began < 20
            time.sleep(0.01)


def test_whatever_goes_wrong_with_a_file_is_its_own_error(saved: Save) -> None:
    def picky(document: Document) -> int:
        if "1" in document.text:
            raise RecursionError("too deep")
        return len(document.text)

    first, wrong, last = read_each([saved(f"{i}.txt", str(i)) for i in range(3)], picky)
    assert (first, last) == (1, 1)
    assert isinstance(wrong, DocumentError)
    assert "1.txt" in str(wrong)
    assert "it cannot be processed (RecursionError: too deep)" in str(wrong)


def test_large_files_are_not_read_ahead_together(saved: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.text.documents.LARGE", 1 << 16)
    paths = iter([saved(f"{i}.txt", "x" * 50_000) for i in range(4)])
    results = read_each(paths, len, workers=2)
    assert next(results) == 50_000
    assert length_hint(paths) == 2  # the second waits for the first to be taken
    assert list(results) == [50_000] * 3


def test_lines_of_a_long_text_are_found_fast_and_in_little_memory() -> None:
    document = Document("a line of a log\n" * 300_000)
    tracemalloc.start()
    began = time.perf_counter()
    assert document.line_of(0) == 1
    assert all(document.line_of(16 * n) == n + 1 for n in range(0, 300_000, 7))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * len(document.text)
    assert time.perf_counter() - began < 30  # a scan of the text for each would take many minutes


def test_nothing_in_the_current_folder_is_run(
    saved: Save,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("longspan", "html", "zipfile", "json", "re"):
        saved(f"{name}.py", "open('executed', 'w')")
    monkeypatch.chdir(tmp_path)
    assert read(saved("a.html", "<p>x")).text == "x"
    assert not os.path.exists("executed")


def test_offsets_outside_of_the_text_are_errors() -> None:
    document = Document("abc")
    for attempt in (document.line_of, document.page_of):
        with pytest.raises(InputError, match="at most 3"):
            attempt(4)
    with pytest.raises(InputError, match="`pages` must be ascending"):
        Document("abc", pages=(0, 2, 1))


def test_a_document_prints_short() -> None:
    assert repr(Document("x" * 10**6, Path("a.pdf"), (0, 5))) == (
        "Document('a.pdf', text, 1,000,000 characters, 2 pages)"
    )


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_text_survives_the_way_through_a_file(text: str) -> None:
    for mark, codec in plain.MARKS:
        found = plain.parse(mark + text.encode(codec))
        assert (found.text, found.replaced) == (text, 0)


@given(st.binary())
def test_any_bytes_are_some_text(data: bytes) -> None:
    text, replaced = plain.decode(data)
    assert 0 <= replaced <= min(text.count("\ufffd"), len(data))
    marked = data.startswith(tuple(mark for mark, _ in plain.MARKS))
    if not marked and b"\0" not in data and "\ufffd" not in (valid := data.decode(errors="replace")):
        assert (text, replaced) == (valid, 0)


@given(st.lists(st.text(), min_size=1), st.data())
def test_pages_and_lines_are_those_of_the_pieces(pieces: list[str], data: st.DataObject) -> None:
    text, starts = "", []
    for piece in pieces:
        starts.append(len(text))
        text += piece + "\n"
    document = Document(text, pages=tuple(starts))
    offset = data.draw(st.integers(0, len(text)))
    page = document.page_of(offset)
    assert page is not None
    assert page == sum(start <= offset for start in starts)
    assert document.line_of(offset) == len(text[:offset].split("\n"))


def test_a_page_that_ends_inside_a_long_tag_is_refused_and_a_script_may_end_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text("<p>x<img src='" + "a" * 9000)
    with pytest.raises(DocumentError, match="ends inside a tag or comment that began"):
        read(path)
    path.write_text("<p>x<img src='data:" + "a" * 3_000_000 + "'>y<script>" + "z < 1; " * 9000)
    assert read(path).text == "xy"
