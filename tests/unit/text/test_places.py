"""Every character says where a person finds it in the file."""

from email.message import EmailMessage
from pathlib import Path

import pytest

from longspan.text.documents import Document, read
from unit.text import files, packages

CELL = "<table:table-cell><text:p>{}</text:p></table:table-cell>".format
NOTES = f"<w:footnotes {files.NAMESPACE}>{{}}</w:footnotes>".format
NOTE = "<w:footnote{}>{}</w:footnote>".format


def mail() -> bytes:
    message = EmailMessage()
    message["Subject"] = "Fees"
    message.set_content("Hello,\n\nthis needle is the only one is\nhere.\n")
    return message.as_bytes()


DRAW = 'xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
CASES: dict[str, tuple[str | bytes, str]] = {
    "a.txt": ("one\n\nthis needle is the only one", "line 3"),
    "a.csv": ("one,two\n1,2\n3,4\nthis needle is the only one,5\n6,7", "line 4"),
    "a.md": ("# One\r\nthis needle is the only one", "line 2"),
    "a.py": ("def f():\n    return 7\n\n\n# this needle is the only one", "line 5"),
    "a.html": ("<html>\n<p>one<br>\ntwo\n<!--\n-->\n<p>\n  this needle is the only one", "line 7"),
    "pre.html": ("<script>\n\n</script><pre>\none\n\ntwo\n\nthis needle is the only one</pre>", "line 8"),
    "a.pdf": (files.pdf(["one", "two", "this needle is the only one"]), "page 3"),
    "a.docx": (
        files.docx(
            files.paragraph("one") + files.paragraph("") + files.paragraph("this needle is the only one")
        ),
        "paragraph 2",
    ),
    "note.docx": (
        files.docx(
            files.paragraph("one"),
            more={
                "word/footnotes.xml": NOTES(
                    NOTE(" w:type='separator'", "<w:p/>")
                    + NOTE("", files.paragraph("first"))
                    + NOTE("", files.paragraph("this needle is the only one"))
                )
            },
        ),
        "footnote 2",
    ),
    "a.pptx": (
        packages.pptx([packages.shape("one"), packages.shape("this needle is the only one")]),
        "slide 2",
    ),
    "a.xlsx": (
        packages.xlsx(
            {"One": "<row><c><v>1</v></c></row>", "My sheet": '<row r="9"><c t="s"><v>0</v></c></row>'},
            ["this needle is the only one"],
        ),
        "sheet My sheet, row 9",
    ),
    "a.odt": (
        packages.odt("<text:p>one</text:p><text:p>this needle is the only one</text:p>"),
        "paragraph 2",
    ),
    "a.odp": (
        packages.odt(
            f"<office:presentation {DRAW}><draw:page><text:p>one</text:p></draw:page>"
            "<draw:page><text:p>this needle is the only one</text:p></draw:page></office:presentation>"
        ),
        "slide 2",
    ),
    "a.ods": (
        packages.odt(
            '<office:spreadsheet><table:table table:name="Prices">'
            f'<table:table-row table:number-rows-repeated="4">{CELL("x")}</table:table-row>'
            f"<table:table-row>{CELL('this needle is the only one')}</table:table-row>"
            "</table:table></office:spreadsheet>"
        ),
        "sheet Prices, row 5",
    ),
    "a.rtf": (rb"{\rtf1 one\par two\line 2\par this needle is the only one}", "paragraph 3"),
    "a.epub": (packages.epub({"one": "<p>one\n\n", "two": "\n\n<p>this needle is the only one"}), "part 2"),
    "a.eml": (mail(), "paragraph 3"),
    "a.ipynb": (
        packages.notebook([("markdown", "one"), ("code", ""), ("code", "this needle is the only one")]),
        "cell 3",
    ),
}


def written(folder: Path, name: str) -> Path:
    data = CASES[name][0]
    (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return folder / name


@pytest.mark.parametrize("name", CASES)
def test_the_place_of_a_word_is_where_a_person_finds_it(tmp_path: Path, name: str) -> None:
    document = read(written(tmp_path, name))
    offset = document.text.index("needle")
    place = CASES[name][1]
    assert document.place_of(offset) == place
    assert document.line_of(offset) == (int(place.split()[1]) if place.startswith("line") else None)
    assert hash(document) == hash(document)


def test_every_word_of_a_page_stands_on_the_line_that_is_named(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "examples" / "documents" / "lincoln-1862.html").read_bytes()
    (tmp_path / "a.html").write_bytes(page)
    document, lines = read(tmp_path / "a.html"), page.decode().split("\n")
    places = [at for at in range(0, len(document.text), 97) if document.text[at : at + 5].isalpha()]
    assert len(places) > 100
    for at in places:
        line = document.line_of(at)
        assert line is not None
        assert document.text[at : at + 4] in lines[line - 1] or document.text[at : at + 4] in lines[line]


def test_a_document_of_a_format_without_places_names_none() -> None:
    assert Document("text", kind="picture").place_of(2) == ""
    assert Document("text").place_of(2) == "line 1"
    assert Document("text", kind="pdf", pages=(0, 2)).place_of(2) == "page 2"
