"""What a reader of the file does not see is left out, counted and told; what he sees is all there."""

import re
from pathlib import Path

import pytest

from longspan.text.documents import Document, read
from unit.text import files, packages


def opened(folder: Path, name: str, data: bytes | str) -> Document:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read(path)


@pytest.mark.parametrize(
    "page",
    [
        "<p>seen <object data=x.swf>more",
        "<p>seen <object data=x.swf><param name=y>more</object>",
        "<p hidden>no<p>seen more",
        "<div><p hidden>no</div>seen more",
        "<p>seen <span style='color: red; DISPLAY : None'>no <b>no</b></span>more",
        "<p>seen <i style='visibility:hidden'>no</i> more",
        "<div hidden><div>no</div>no</div>seen more",
        "<section><div hidden>no<br></section>seen more",
        "<ul><li hidden>no<ul><li>no</ul><li>seen more</ul>",
        "<table><tr hidden><td>no<tr><td>seen more</table>",
        "<table><tr><td hidden>no<td>seen more</table>",
        "<dialog>no</dialog><dialog open>seen more</dialog>",
        "<p aria-hidden=true>seen <b hidden=until-found>more</b>",
        "<details><summary>seen</summary>more</details>",
        "<svg><text>no<p>seen more",
        "<input type=hidden value=x hidden>seen more",
        "<br hidden>seen <img style='display:none'>more",
        "<p hidden/>seen more",
        "<span hidden>no<b>no</span>seen more",
        "<div style='background: url(display:none)'>seen more</div>",
        "seen more<div hidden>no",
    ],
)
def test_a_page_gives_what_a_browser_shows(tmp_path: Path, page: str) -> None:
    document = opened(tmp_path, "a.html", page)
    assert document.text.split() == ["seen", "more"]
    hidden = len(re.findall(r"\bno\b(?=[< ]|$)", page)) if "svg" not in page else 0
    assert document.hidden == 2 * hidden
    assert ("hidden text" in document.gap) == bool(hidden)


def test_what_is_hidden_is_told(tmp_path: Path) -> None:
    document = opened(tmp_path, "a.html", "<p>seen<p hidden>four words of nothing")
    assert document.hidden == len("fourwordsofnothing")
    assert document.gap == "18 characters of hidden text left out"


def test_hidden_tags_without_end_cost_linear_time(tmp_path: Path) -> None:
    page = "<div hidden>" + "<b>" * 20_000 + "<p></p></i></section>" * 50_000 + "</div>" * 20_000 + "seen"
    assert opened(tmp_path, "a.html", page).text == "seen"


def test_a_word_document_gives_moved_text_once_and_no_hidden_runs(tmp_path: Path) -> None:
    off, deeper = "<w:vanish w:val='0'/>", "<w:rStyle w:val='Deeper'/>"

    def run(text: str, look: str = "") -> str:
        return f"<w:r><w:rPr>{look}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>"

    styles = (
        f"<w:styles {files.NAMESPACE}><w:style w:styleId='Secret'><w:rPr><w:vanish/></w:rPr></w:style>"
        "<w:style w:styleId='Deeper'><w:basedOn w:val='Secret'/></w:style></w:styles>"
    )
    body = (
        f"<w:p><w:moveFrom w:id='1'>{run('moved ')}</w:moveFrom>{run('first ')}</w:p>"
        f"<w:p><w:moveTo w:id='2'>{run('moved ')}</w:moveTo><w:del>{run('gone')}</w:del>"
        f"<w:ins>{run('new')}</w:ins></w:p>"
        f"<w:p><w:pPr><w:rPr><w:vanish/><w:del/></w:rPr></w:pPr>{run('shown ')}{run('no', '<w:vanish/>')}"
        f"{run('too ', off)}{run('no', deeper)}</w:p>"
        f"<w:p><w:pPr><w:pStyle w:val='Secret'/></w:pPr>{run('no')}</w:p>"
        f"<w:p>{run('end')}</w:p>"
    )
    document = opened(tmp_path, "a.docx", files.docx(body, more={"word/styles.xml": styles}))
    assert document.text == "first\n\nmoved new\n\nshown too\n\nend"
    assert document.hidden == 6


def test_hidden_slides_and_shapes_are_left_out_and_still_counted(tmp_path: Path) -> None:
    hidden = packages.shape("no").replace("<p:sp>", '<p:sp><p:nvSpPr><p:cNvPr id="2" hidden="1"/></p:nvSpPr>')
    slides = [packages.shape("one", "title") + hidden, packages.shape("no"), packages.shape("three")]
    data = packages.pptx(slides, hidden_slides=(2,))
    document = opened(tmp_path, "a.pptx", data)
    assert document.text == "one\n\n\n\nthree"
    assert document.place_of(document.text.index("three")) == "slide 3"
    assert document.hidden == 4


def test_hidden_sheets_rows_and_columns_are_left_out(tmp_path: Path) -> None:
    columns = '<cols><col min="2" max="2" hidden="1"/></cols>'
    row = '<row r="{}" {}><c r="A{}"><v>{}</v></c><c r="B{}"><v>99</v></c></row>'.format
    rows = columns + row(1, "", 1, 11, 1) + row(5, 'hidden="1"', 5, 88, 5) + row(7, "", 7, 33, 7)
    data = packages.xlsx({"Open": rows, "Secret": row(1, "", 1, 77, 1)}, ["x"], hidden=("Secret",))
    document = opened(tmp_path, "a.xlsx", data)
    assert document.text == "Open\n11\n33"
    assert document.place_of(len(document.text) - 1) == "sheet Open, row 7"
    assert document.hidden == 12


def test_opendocument_leaves_out_what_is_hidden(tmp_path: Path) -> None:
    namespaces = (
        'xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" '
        'xmlns:presentation="urn:oasis:names:tc:opendocument:xmlns:presentation:1.0"'
    )
    style = (
        f'<office:styles {namespaces}><style:style style:name="Invisible">'
        '<style:text-properties text:display="none"/></style:style></office:styles>'
    )
    body = (
        '<text:p>seen <text:span text:style-name="Invisible">no</text:span>'
        '<text:hidden-text text:is-hidden="true">no</text:hidden-text>more</text:p>'
        '<text:p><text:hidden-paragraph text:is-hidden="true"/>no</text:p>'
        '<text:p><text:hidden-paragraph text:is-hidden="false"/>and</text:p>'
        '<text:section text:display="none"><text:p>no</text:p></text:section><text:p>more</text:p>'
    )
    document = opened(tmp_path, "a.odt", _styled(style, body))
    assert document.text == "seen more\n\nand\n\nmore"
    assert document.hidden == 8


def test_hidden_rows_and_columns_of_an_open_spreadsheet_are_left_out(tmp_path: Path) -> None:
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>".format
    hidden = 'table:visibility="collapse"'
    row = "<table:table-row {}>{}</table:table-row>".format
    body = (
        '<office:spreadsheet><table:table table:name="A"><table:table-column/>'
        f'<table:table-column table:number-columns-repeated="2" {hidden}/><table:table-column/>'
        + row("", cell("one") + cell("no") + cell("no") + cell("two"))
        + row(hidden, cell("no"))
        + row("", cell("three"))
        + "</table:table></office:spreadsheet>"
    )
    document = opened(tmp_path, "a.ods", packages.odt(body))
    assert document.text == "one\ttwo\nthree"
    assert (document.hidden, document.place_of(len(document))) == (6, "sheet A, row 3")


def _styled(style: str, body: str) -> bytes:
    content = f"<office:document {packages.ODF}>{style}<office:body>{body}</office:body></office:document>"
    return files.zipped({"content.xml": content})


def test_rich_text_leaves_out_what_is_hidden_or_deleted(tmp_path: Path) -> None:
    text = r"{\rtf1 seen {\v no}\v no\v0  more {\deleted no}{\v no\plain  and} {\v{no}}end}"
    document = opened(tmp_path, "a.rtf", text)
    assert document.text == "seen more and end"
    assert document.hidden == 10
