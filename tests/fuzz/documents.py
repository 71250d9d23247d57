"""Files of every kind that is read, damaged: their bytes, or the XML in their packages."""

import io
import random
import zipfile
from functools import cache
from pathlib import Path

from fuzz.harness import campaign
from fuzz.mutations import mutated
from longspan.text.documents import Limits, read
from unit.text import packages as office
from unit.text.files import docx, paragraph, pdf

LIMITS = Limits(seconds=6, characters=1 << 22)
HTML = (
    b"<!DOCTYPE html><html><head><title>A river</title><style>p {}</style></head><body><h1>The river</h1>"
    b"<p>It flows <b>to</b> the sea.<table><tr><td>1<td>2</table><ul><li>fish<li hidden>no</ul>"
    b"<pre>a\n b</pre><object>shown</object><script>x()</script>&amp;&#233;&nbsp;<!-- no --></body></html>"
)
MAIL = (
    b"From: A <a@b.c>\nTo: d@e.f\nSubject: =?utf-8?q?r=C3=AFver?=\nMIME-Version: 1.0\n"
    b'Content-Type: multipart/alternative; boundary="x"\n\n--x\nContent-Type: text/plain; charset=latin-1\n'
    b"Content-Transfer-Encoding: quoted-printable\n\nr=EFver\n--x\nContent-Type: text/html\n\n<p>river</p>\n"
    b"--x--\n"
)
NOTEBOOK = (
    b'{"cells": [{"cell_type": "markdown", "source": ["# River"]}, {"cell_type": "code", "source": "x", '
    b'"outputs": [{"text": ["1"]}]}], "metadata": {}, "nbformat": 4}'
)
RTF = (
    b"{\\rtf1\\ansi{\\fonttbl{\\f0 A;}}{\\info{\\title River}}\\f0 It \\b flows\\b0\\par to \\'e9 "
    b"\\u233? the \\bin3 abc sea.}"
)
MARKDOWN = (
    b"# The river\n\nIt flows\tto the sea.\n\n## Fish\n\n- trout\n\n```\ncode\n```\n\n| a | b |\n|---|---|\n"
)
WORDS = (
    *(
        b"<",
        b"</",
        b"<!--",
        b"<![CDATA[",
        b"<p>",
        b"</p>",
        b"<object>",
        b"<svg>",
        b"&#0;",
        b"&#x110000;",
        b"\xff",
    ),
    *(
        b"<<",
        b">>",
        b"obj",
        b"endobj",
        b"stream\n",
        b"0 0 R",
        b"/Kids [",
        b"/Length -1",
        b"\\u-1?",
        b"{",
        b"}",
    ),
    *(
        b"\\bin99 ",
        b"--x\n",
        b"=?utf-8?b?",
        b"PK\1\2",
        b"PK\3\4",
        b"PK\5\6",
        b"\0",
        b"\r",
        b"\xe2\x80\xa8",
        b"\xed\xa0\x80",
    ),
    *(
        b"<w:p>",
        b"<w:del>",
        b"<w:moveFrom>",
        b"<text:p>",
        b"<row>",
        b'r="ZZZZ9999"',
        b"xmlns:w='x'",
        b"\xff\xfe",
    ),
)


@cache
def good() -> dict[str, bytes]:
    """A good file for each suffix."""
    row = '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1"><v>3</v></c></row>'
    return {
        "txt": b"The river flows.\n\nTo the \xc3\xa9 sea.\r\n" * 5,
        "md": MARKDOWN,
        "html": HTML,
        "csv": b"a,b\n1,2\n",
        "eml": MAIL,
        "ipynb": NOTEBOOK,
        "rtf": RTF,
        "pdf": pdf(["The river\nflows.", "To the sea."], "River", [("Sea", 1)]),
        "docx": docx(paragraph("The river") + paragraph("flows."), "River"),
        "odt": office.odt("<text:p>The river</text:p><text:h>flows</text:h>"),
        "xlsx": office.xlsx({"a": row, "b": row}, ["river"]),
        "pptx": office.pptx(["<p:sp><a:t>river</a:t></p:sp>"]),
        "epub": office.epub({"a": "<p>river</p>", "b": "<h1>sea</h1>"}),
    }


def make(draw: random.Random, folder: Path) -> None:
    """One file."""
    suffix = draw.choice(sorted(good()))
    data, inside = good()[suffix], draw.random() < 0.7
    data = _repacked(data, draw) if inside and data[:2] == b"PK" else mutated(data, draw, WORDS)
    (folder / f"case.{suffix}").write_bytes(data)


def _repacked(data: bytes, draw: random.Random) -> bytes:
    """The package with one member damaged, so that its checksum is right."""
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        members = {info.filename: package.read(info) for info in package.infolist()}
    name = draw.choice(sorted(members))
    members[name] = mutated(members[name], draw, WORDS)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        for member, content in members.items():
            package.writestr(member, content)
    return out.getvalue()


def run(folder: Path) -> None:
    """What a document says of itself is about its text, and its text can be written."""
    (path,) = (path for path in folder.iterdir() if path.name.startswith("case."))
    document = read(path, limits=LIMITS)
    document.text.encode()
    (document.title or "").encode()
    assert all(0 <= heading.start <= len(document) for heading in document.headings)
    assert list(document.pages) == sorted(document.pages)
    for offset in {0, len(document) // 2, len(document)}:
        line = document.line_of(offset)
        assert line is None or line >= 1
        document.page_of(offset)
        document.section_of(offset)


def fuzz(seconds: float, seed: int) -> int:
    """How many files were tried; FuzzError if one failed."""
    return campaign("fuzz.documents", seconds, seed)
