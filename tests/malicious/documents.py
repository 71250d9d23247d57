"""Files made to exhaust, crash or mislead a reader of documents."""

import os
import random
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from unit.text.files import NAMESPACE, docx, objects, paragraph, pdf, stream, zipped

LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
NOISE = random.Random(0).randbytes(100_000)
ZEROS = b"\0" * (16 << 20)


def packages() -> dict[str, bytes]:
    """Zip files that are no Word documents, or that no Word program would write."""
    good = docx(paragraph("fine"))
    nested = zipped({"word/document.xml": good})
    for _ in range(20):
        nested = zipped({"inner.zip": nested})
    doctype = {
        "billion laughs": f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}]>',
        "quadratic blow-up": f'<!DOCTYPE x [<!ENTITY a "{"a" * 50_000}">]>',
        "an external entity": '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>',
        "an external DTD": '<!DOCTYPE x SYSTEM "http://192.0.2.1/x.dtd">',
        "a parameter entity": '<!DOCTYPE x [<!ENTITY % e SYSTEM "file:///dev/zero"> %e;]>',
        "an empty DTD": "<!DOCTYPE x>",
    }
    bodies = {name: docx(paragraph("&e;&a;&l11;"), prolog=text) for name, text in doctype.items()}
    deep = "<w:p>" * 50_000 + "</w:p>" * 50_000
    return bodies | {
        "a footnote with a DTD": docx("", more={"word/footnotes.xml": f"<!DOCTYPE x><x {NAMESPACE}/>"}),
        "zeros": zipped({"word/document.xml": ZEROS}),
        "spaces": docx(paragraph("a" + " " * len(ZEROS))),
        "a huge image": _claiming(docx("", more={"word/a.png": b"x" * 100}), 1_300_000_000),
        "nested zips": nested,
        "a zip of zeros in a zip": zipped({"word/document.xml": zipped({"x": ZEROS})}),
        "20,000 members": zipped({"word/document.xml": "<x/>", **{f"a{i}": b"" for i in range(20_000)}}),
        "two members of one name": _twice(),
        "no text": zipped({"readme.txt": "hello"}),
        "an empty zip": zipped({}),
        "no zip": b"hello",
        "a header only": b"PK\3\4",
        "cut off": good[: len(good) // 2],
        "without its directory": good[: good.index(b"PK\1\2")],
        "a byte changed": _changed(good),
        "encrypted": _flagged(good),
        "an unknown compression": _method(good),
        "deep XML": docx(deep),
        "broken XML": docx("<w:p>"),
        "an undefined entity": docx(paragraph("&nothing;")),
        "no XML": zipped({"word/document.xml": b"\xff\xfe\0\0 nothing"}),
        "an unknown encoding": docx(paragraph("x"), prolog='<?xml version="1.0" encoding="rot13"?>'),
    }


def _twice() -> bytes:
    one = zipped({"word/document.xml": "<x/>", "word/dOcument.xml": "<y/>"})
    return one.replace(b"word/dOcument.xml", b"word/document.xml")


def _claiming(data: bytes, size: int) -> bytes:
    """The last member says that it would unpack to `size` bytes."""
    place = data.rindex(b"PK\1\2")
    return data[: place + 24] + size.to_bytes(4, "little") + data[place + 28 :]


def _changed(data: bytes) -> bytes:
    place = data.index(b"word/document.xml") + 40
    return data[:place] + bytes([data[place] ^ 255]) + data[place + 1 :]


def _flagged(data: bytes) -> bytes:
    place = data.index(b"PK\1\2")
    return data[: place + 8] + b"\1\0" + data[place + 10 :]


def _method(data: bytes) -> bytes:
    place = data.index(b"PK\1\2")
    return data[: place + 10] + b"\x63\0" + data[place + 12 :]


def pdfs() -> dict[str, bytes]:
    """PDFs that are damaged, endless or huge when unpacked."""
    good = pdf(["fine", "also fine"])
    catalog = b"<< /Type /Catalog /Pages 2 0 R >>"
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R %b >>"
    tree = b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>"
    bomb = zlib.compress(zlib.compress(b"\0" * (128 << 20)))
    twice = b"/Filter [/FlateDecode /FlateDecode]"
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 4 0 R >> >>"
    return {
        "empty": b"",
        "garbage": NOISE,
        "garbage behind a header": b"%PDF-1.7\n" + NOISE,
        "a header only": b"%PDF-1.7\n",
        "cut in the middle": good[:300],
        "no catalogue": objects([b"null"]),
        "a catalogue that is its own pages": objects([b"<< /Type /Catalog /Pages 1 0 R >>"]),
        "pages that are their own kids": objects(
            [catalog, b"<< /Type /Pages /Count 9 /Kids [2 0 R 2 0 R] >>"]
        ),
        "two billion pages": objects([catalog, b"<< /Type /Pages /Count 2000000000 /Kids [] >>"]),
        "pages that are not there": objects([catalog, b"<< /Type /Pages /Count 50 /Kids [9 0 R] >>"]),
        "a page tree in a circle": objects(
            [
                catalog,
                b"<< /Type /Pages /Count 5 /Kids [3 0 R] >>",
                b"<< /Type /Pages /Count 5 /Kids [2 0 R] >>",
            ]
        ),
        "arrays without end": objects([catalog, b"[" * 1_000_000]),
        "dictionaries without end": objects([catalog, b"<< /A " * 1_000_000]),
        "a stream of 128 MB packed twice": objects([catalog, tree, page % b"", stream(bomb, twice)]),
        "a form that draws itself": objects(
            [
                catalog,
                tree,
                page % b"/Resources << /XObject << /X 4 0 R >> >>",
                stream(b"/X Do /X Do", form),
            ]
        ),
        "a length that is its own length": objects(
            [catalog, tree, page % b"", b"<< /Length 4 0 R >>\nstream\nx\nendstream"]
        ),
        "no root": good.replace(b"/Root", b"/Rxxt"),
        "encrypted": good.replace(
            b"/Info 4 0 R",
            b"/Encrypt << /Filter /Standard /V 1 /R 2 /O (%b) /U (%b) /P -4 >> /ID [(a)(a)]"
            % (b"o" * 32, b"u" * 32),
        ),
        "pictures only": pdf([""]),
    }


def pages() -> dict[str, bytes]:
    """HTML that takes Python's parser too much time or memory: refused or read, but soon."""
    return {
        "comments that never end": b"<!--" * 1_000_000,
        "instructions that never end": b"<?" * 2_000_000,
        "declarations that never end": b"<!x" * 1_000_000,
        "tags that never end": b"<a " * 1_000_000,
        "attributes without end": b"<a" + b" a=1" * 1_000_000,
        "quotes that never end": b"<a b='" * 500_000,
        "slashes that never end": b"<a /" * 1_000_000,
        "end tags that never end": b"</" * 2_000_000,
        "comments that end in the last byte": b"<!--" * 1_000_000 + b"-->",
        "deep divisions": b"<div>" * 300_000,
        "deep hidden pictures": b"<svg>" * 300_000,
        "numbers too large": b"&#99999999999999999999;" * 100_000,
    }


def write(folder: Path) -> None:
    """Files `bad-...`, each of which must be refused, and `hard-...`, which must only be over soon."""
    for case, data in pages().items():
        (folder / f"hard-{case}.html").write_bytes(data)
    kinds: Mapping[str, Mapping[str, bytes]] = {"docx": packages(), "pdf": pdfs()}
    for suffix, cases in kinds.items():
        for case, data in cases.items():
            (folder / f"bad-{case}.{suffix}").write_bytes(data)
    with (folder / "bad-a terabyte.txt").open("wb") as file:
        file.truncate(1 << 40)
    with (folder / "bad-a gigabyte.pdf").open("wb") as file:
        file.truncate(1 << 30)
    (folder / "bad-a program").write_bytes(b"\x7fELF\2\1\1\0" + NOISE)
    (folder / "bad-an archive.zip").write_bytes(zipped({"a.txt": "x"}, zipfile.ZIP_STORED))
    (folder / "bad-a folder.txt").mkdir()
    os.mkfifo(folder / "bad-a pipe.txt")
    (folder / "bad-endless.txt").symlink_to("/dev/zero")
    (folder / "bad-nowhere.txt").symlink_to("nowhere")
    (folder / "bad-circle.txt").symlink_to("bad-circle.txt")
