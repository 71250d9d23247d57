"""Office documents, books, mails and notebooks become text with titles, headings and pages."""

from email.message import EmailMessage
from pathlib import Path

import pytest

from longspan.errors import DocumentError
from longspan.text.documents import Document, Heading, Limits, read
from longspan.text.files.kinds import CODE, DATA, PARSED, SUFFIXES
from unit.text import packages
from unit.text.files import zipped


def opened(folder: Path, name: str, data: bytes | str) -> Document:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read(path)


def test_opendocument_gives_headings_lists_tables_and_notes(tmp_path: Path) -> None:
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>".format
    row = f"<table:table-row>{cell('a')}{cell('b')}</table:table-row>"
    body = (
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
        '<text:h text:outline-level="1">Fees</text:h>'
        '<text:h text:outline-level="2">Late<text:s/>fees</text:h>'
        "<text:p>One <text:span>two</text:span><text:line-break/>three"
        "<text:note><text:note-citation>1</text:note-citation>"
        "<text:note-body><text:p> a note</text:p></text:note-body></text:note></text:p>"
        f"<table:table>{row}{row}</table:table>"
        "<office:annotation><text:p>a comment</text:p></office:annotation>"
    )
    document = opened(tmp_path, "a.odt", packages.odt(body, "My title"))
    assert document.text == "Fees\n\nLate fees\n\nOne two\nthree a note\n\na\tb\na\tb"
    assert document.headings == (Heading(0, 1, "Fees"), Heading(6, 2, "Late fees"))
    assert (document.kind, document.title) == ("odt", "My title")


def test_a_book_is_read_in_the_order_of_its_spine(tmp_path: Path) -> None:
    prolog = (
        '<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head>'
    )
    chapters = {
        "two": f"{prolog}<body><h2>Two</h2>end</body>",
        "one": f"{prolog}<body><h1>One &amp; all</h1><p>begin",
    }
    document = opened(tmp_path, "a.epub", packages.epub(chapters, "A book", ["one", "two"]))
    assert document.text == "One & all\n\nbegin\n\nTwo\n\nend"
    assert document.headings == (Heading(0, 1, "One & all"), Heading(18, 2, "Two"))
    assert (document.kind, document.title) == ("epub", "A book")
    assert opened(tmp_path, "book", packages.epub(chapters)).kind == "epub"


def test_slides_are_pages_and_their_titles_headings(tmp_path: Path) -> None:
    slides = [
        packages.shape("Plans\nfor 2027", "title")
        + packages.shape("one\ntwo")
        + packages.shape("7", "sldNum"),
        packages.shape("Costs", "ctrTitle") + packages.shape("three"),
    ]
    document = opened(tmp_path, "a.pptx", packages.pptx(slides, "Talk", packages.shape("say hello")))
    assert document.text == "Plans for 2027\n\none\ntwo\n\nsay hello\n\nCosts\n\nthree"
    assert [heading.text for heading in document.headings] == ["Plans for 2027", "Costs"]
    assert (document.title, document.page_of(0), document.page_of(len(document.text))) == ("Talk", 1, 2)
    assert document.section_of(document.text.index("three")) == ("Costs",)


def test_a_workbook_gives_rows_with_dates_numbers_and_texts(tmp_path: Path) -> None:
    cell = '<c t="{}" s="{}"><v>{}</v></c>'.format
    row = "<row>" + cell("s", 0, 0) + cell("n", 1, 46053) + cell("n", 0, "1.5") + cell("b", 0, 1) + "</row>"
    inline = '<row><c t="inlineStr"><is><t>in  line</t></is></c><c><f>1+1</f><v>2</v></c>'
    inline += '<c t="s"><v>99</v></c></row>'
    document = opened(tmp_path, "a.xlsx", packages.xlsx({"Prices": row, "More": inline}, ["a text"]))
    assert document.text == "Prices\na text\t2026-01-31\t1.5\tTRUE\n\nMore\nin line\t2"
    assert [heading.text for heading in document.headings] == ["Prices", "More"]
    names = '<row><c t="s"><v>0</v></c><c t="s"><v>1</v></c></row>'
    document = opened(tmp_path, "b.xlsx", packages.xlsx({"Prices": names + row}, ["Name", "Price"]))
    assert document.section_of(len(document)) == ("Prices", "Name Price")


def test_rich_text_gives_what_is_shown(tmp_path: Path) -> None:
    text = (
        r"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Times;}}{\info{\title A \'e9 title}}{\*\generator X;}"
        r"\pard\outlinelevel0 Fees\par\pard One {\b two}\line caf\'e9 \u8364?3 \u-10179?\u-8704? "
        r"\{x\}\tab y\emdash z\par"
        "\r\n"
        r"\trowd\intbl a\cell b\cell\row\pard{\pict 0000ffff}{\header no}\bin4 }}}} end}"
    )
    document = opened(tmp_path, "a.rtf", text)
    assert document.text == "Fees\n\nOne two\ncafé €3 😀 {x}\ty—z\n\na\tb\n\nend".replace(
        "b\n\nend", "b\nend"
    )
    assert document.headings == (Heading(0, 1, "Fees"),)
    assert document.title == "A é title"
    assert opened(tmp_path, "letter", text).kind == "rtf"


def test_a_mail_gives_its_header_its_text_and_the_names_of_attachments(tmp_path: Path) -> None:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Grüße from us", "Ann <a@b.c>", "d@e.f"
    mail["X-Other"] = "no"
    mail.set_content("Hello,\n\nas said.\n")
    mail.add_alternative("<p>Hello, in HTML", subtype="html")
    mail.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="plän.pdf")
    mail.add_attachment("secret text", filename="notes.txt")
    inner = EmailMessage()
    inner["Subject"] = "Inner"
    inner.set_content("<h1>Top</h1><p>caf&eacute;", subtype="html")
    mail.add_attachment(inner)
    document = opened(tmp_path, "a.eml", mail.as_bytes())
    assert document.text == (
        "Subject: Grüße from us\nFrom: Ann <a@b.c>\nTo: d@e.f\n\nHello,\n\nas said.\n\n"
        "Attachment: plän.pdf\nAttachment: notes.txt\nSubject: Inner\n\nTop\n\ncafé"
    )
    assert (document.kind, document.title) == ("eml", "Grüße from us")


def test_a_notebook_gives_its_cells_and_a_little_output(tmp_path: Path) -> None:
    outputs = [
        {"output_type": "stream", "text": ["x" * 3000]},
        {"output_type": "execute_result", "data": {"text/plain": "42", "image/png": "AAAA"}},
        {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["long"]},
    ]
    cells = [("markdown", "# Study\n\ntext\n\n## Data"), ("code", "# not a heading\nprint(1)")]
    document = opened(tmp_path, "a.ipynb", packages.notebook(cells, outputs))
    output = "x" * 1000 + " ...\n\n42\n\nValueError: no"
    assert document.text == f"# Study\n\ntext\n\n## Data\n\n# not a heading\nprint(1)\n\n{output}"
    assert document.headings == (Heading(0, 1, "Study"), Heading(15, 2, "Data"))
    assert document.title == "Study"


def test_the_columns_of_a_table_are_the_heading_of_its_rows(tmp_path: Path) -> None:
    document = opened(tmp_path, "a.csv", '"Name";Price\r\nRose;3\r\n')
    assert document.text == '"Name";Price\r\nRose;3\r\n'
    assert document.section_of(len(document)) == ("Name, Price",)
    assert opened(tmp_path, "b.csv", "1,2\n3,4\n").headings == ()
    assert opened(tmp_path, "c.tsv", "only one column\n3\n").headings == ()


def test_every_kind_is_parsed_or_is_text() -> None:
    assert {"html", "pdf", "docx", "odt", "rtf", "epub", "eml", "ipynb", "xlsx", "pptx"} <= PARSED
    assert set(SUFFIXES.values()) - PARSED == {"text", "markdown"}
    assert len({*CODE, *DATA}) == len(CODE) + len(DATA)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.odt", packages.odt("<text:p>more than ten characters</text:p>")),
        ("a.epub", packages.epub({"a": "more than ten characters"})),
        ("a.pptx", packages.pptx([packages.shape("more than"), packages.shape("ten characters")])),
        ("a.xlsx", packages.xlsx({"more than": "<row><c><v>10</v></c></row>"}, ["ten"])),
        ("a.rtf", rb"{\rtf1 more than ten characters}"),
        ("a.eml", b"Subject: more than ten characters\n\n"),
        ("a.ipynb", packages.notebook([("code", "more than"), ("code", "ten characters")])),
    ],
)
def test_no_format_gives_more_characters_than_allowed(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DocumentError, match="more than 10 characters"):
        read(tmp_path / name, limits=Limits(characters=10))


@pytest.mark.parametrize("name", ["a.odt", "a.epub", "a.pptx", "a.xlsx"])
def test_a_zip_file_of_something_else_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DocumentError, match="it is a zip file, but not"):
        opened(tmp_path, name, zipped({"readme.txt": "hello"}))


def test_a_book_without_one_of_its_chapters_is_refused(tmp_path: Path) -> None:
    data = packages.epub({"one": "x", "two": "y"}).replace(b"OEBPS/two.xhtml", b"OEBPS/xxx.xhtml")
    with pytest.raises(DocumentError, match=r"its chapter OEBPS/two.xhtml is missing"):
        opened(tmp_path, "a.epub", data)
