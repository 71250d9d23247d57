"""Small real PDFs and Word documents, written by hand."""

import io
import zipfile
from collections.abc import Mapping, Sequence

NAMESPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
CORE = (
    '<c:coreProperties xmlns:c="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{}</dc:title></c:coreProperties>'
)


def objects(bodies: Sequence[bytes], trailer: bytes = b"") -> bytes:
    """A PDF of these objects, numbered from 1, of which the first is the catalogue."""
    data = bytearray(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(bodies, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(bodies) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    data += b"trailer << /Size %d /Root 1 0 R %b >>\n" % (len(bodies) + 1, trailer)
    return bytes(data + b"startxref\n%d\n%%%%EOF\n" % table)


def stream(content: bytes, more: bytes = b"") -> bytes:
    return b"<< /Length %d %b >>\nstream\n%b\nendstream" % (len(content), more, content)


def pdf(
    pages: Sequence[str], title: str = "", marks: Sequence[tuple[str, int]] = (), sized: bool = False
) -> bytes:
    """A PDF whose pages hold these lines of text; bookmarks name a page, sized lines begin with `12|`."""
    kids = b" ".join(b"%d 0 R" % (5 + 2 * i) for i in range(len(pages)))
    bodies = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%b] >>" % (len(pages), kids),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Title (%b) >>" % title.encode("latin-1"),
    ]
    for i, page in enumerate(pages):
        written = [
            (line.split("|") if sized else ["12", line]) for line in page.split("\n") if line or not sized
        ]
        lines = b" ".join(
            b"/F %b Tf (%b) Tj T*" % (size.encode(), line.encode("latin-1")) for size, line in written
        )
        bodies += [
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F 3 0 R >> >> >>" % (6 + 2 * i),
            stream(b"BT /F 12 Tf 72 720 Td 24 TL %b ET" % lines),
        ]
    if marks:
        first = len(bodies) + 2
        bodies[0] = bodies[0].replace(b" >>", b" /Outlines %d 0 R >>" % (first - 1))
        bodies.append(b"<< /First %d 0 R /Last %d 0 R >>" % (first, first + len(marks) - 1))
        for i, (name, number) in enumerate(marks):
            following = b"/Next %d 0 R" % (first + i + 1) if i + 1 < len(marks) else b""
            bodies.append(
                b"<< /Title (%b) /Parent %d 0 R %b /Dest [%d 0 R /Fit] >>"
                % (name.encode("latin-1"), first - 1, following, 5 + 2 * number)
            )
    return objects(bodies, b"/Info 4 0 R")


def zipped(members: Mapping[str, bytes | str], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as package:
        for name, data in members.items():
            package.writestr(name, data)
    return file.getvalue()


def docx(
    body: str, title: str = "", prolog: str = "", more: Mapping[str, bytes | str] | None = None
) -> bytes:
    """A Word document with this XML in its body."""
    main = f"{prolog}<w:document {NAMESPACE}><w:body>{body}</w:body></w:document>"
    return zipped({"word/document.xml": main, "docProps/core.xml": CORE.format(title), **(more or {})})


def paragraph(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"
