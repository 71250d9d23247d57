"""Files made to exhaust, crash or mislead a reader of documents."""

import os
import random
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

from unit.text import packages as office
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


def other_packages() -> dict[str, bytes]:
    """Files of other office formats, and books, that no program would write."""
    doctype = f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}]>'
    external = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    row = '<row><c t="s"><v>0</v></c></row>'
    deep = "<text:p>" * 50_000 + "</text:p>" * 50_000
    climb = zipped({"META-INF/container.xml": "<rootfile full-path='../../etc/passwd'/>"})
    return {
        "laughs.odt": office.odt("<text:p>&l11;</text:p>", prolog=doctype),
        "an external entity.odt": office.odt("<text:p>&e;</text:p>", prolog=external),
        "deep.odt": office.odt(deep),
        "spaces.odt": office.odt("<text:p>" + " " * len(ZEROS) + "</text:p>"),
        "cut off.odt": office.odt("<text:p>fine</text:p>")[:200],
        "zeros.ods": zipped({"content.xml": ZEROS}),
        "laughs.xlsx": office.xlsx({"a": "<row><c><v>&l11;</v></c></row>"}, prolog=doctype),
        "rows.xlsx": office.xlsx({"a": row * 3_000_000}),
        "zeros.xlsx": zipped({"xl/workbook.xml": ZEROS}),
        "broken.xlsx": office.xlsx({"a": "<row><c>"}),
        "many strings.xlsx": office.xlsx({"a": ""}, ["a"] * 6_000_000),
        "laughs.pptx": zipped({"ppt/presentation.xml": f"{doctype}<x>&l11;</x>"}),
        "deep.pptx": office.pptx(["<p:sp>" * 50_000 + "</p:sp>" * 50_000]),
        "broken.pptx": office.pptx(["<p:sp>"]),
        "no zip.pptx": NOISE,
        "a path that climbs.epub": climb,
        "no contents.epub": zipped({"mimetype": "application/epub+zip"}),
        "laughs.epub": zipped({"META-INF/container.xml": f"{doctype}<rootfile full-path='&l11;'/>"}),
        "zeros.epub": zipped({"META-INF/container.xml": "<rootfile full-path='a'/>", "a": ZEROS}),
        "cut off.epub": office.epub({"a": "x"})[:300],
    }


def other_texts() -> dict[str, bytes]:
    """Mails, notebooks and rich text: refused or read, but soon."""
    part = b"Content-Type: multipart/mixed; boundary=%b\n\n--%b\n"
    nested = b"".join(part % (b"b%d" % i, b"b%d" % i) for i in range(3000))
    header = b"Subject: " + b"=?utf-8?q?a?= " * 200_000 + b"\n\nx"
    garbage = b"Content-Type: text/plain; charset=zip\nContent-Transfer-Encoding: base64\n\n" + NOISE
    parts = b"Content-Type: multipart/mixed; boundary=b\n\n" + b"--b\n\nx\n" * 200_000
    inside = b"Content-Type: message/rfc822\n\n" * 3000
    return {
        "nested parts.eml": nested,
        "a long header.eml": header,
        "base64 of garbage.eml": garbage,
        "many parts.eml": parts,
        "mails in mails.eml": inside,
        "noise.eml": NOISE,
        "quoted.eml": b"Content-Transfer-Encoding: quoted-printable\n\n" + b"=" * 2_000_000,
        "addresses.eml": b"To: " + b"<a@b>," * 300_000 + b"\n\n",
        "one line.eml": b"Subject: " + b"a " * 2_000_000,
        "charsets.eml": b"Content-Type: text/plain; charset*0=" + b"a" * 999_999 + b"\n\n",
        "outputs.ipynb": b'{"cells": [' + b'{"outputs": [{}, 1, null], "source": 7},' * 100_000 + b"0]}",
    }


def refused_texts() -> dict[str, bytes]:
    """Notebooks and rich text that are damaged."""
    return {
        "deep.rtf": b"{\\rtf1" + b"{" * 1_000_000,
        "open.rtf": b"{\\rtf1 text",
        "closed.rtf": b"{\\rtf1 text}}}",
        "noise.rtf": NOISE,
        "noise behind a header.rtf": b"{\\rtf1 " + NOISE,
        "bin.rtf": b"{\\rtf1 \\bin999999999 x}",
        "words.rtf": b"{\\rtf1" + b"\\a" * 500_000,
        "deep.ipynb": b"[" * 1_000_000,
        "a list.ipynb": b"[]",
        "no JSON.ipynb": b"cells",
        "digits.ipynb": b'{"cells": ' + b"9" * 2_000_000 + b"}",
    }


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
    for name, data in (other_packages() | refused_texts()).items():
        (folder / f"bad-{name}").write_bytes(data)
    for name, data in other_texts().items():
        (folder / f"hard-{name}").write_bytes(data)
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
