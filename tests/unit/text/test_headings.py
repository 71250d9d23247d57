"""Headings are found in plain text, markup and source code, and what only looks like one is not."""

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from longspan.errors import InputError
from longspan.text.documents import Document, Heading, read
from longspan.text.headings import headings
from longspan.text.markup import asciidoc, equals_signs, markdown, org, tex, underlined
from longspan.text.signatures import signatures
from longspan.text.titles import title_of
from machine import assert_linear
from unit.text import files

BODY = "The parties have agreed on what follows, and nothing else was said between them.\n\n"
LINES = "   It is sent by one side,\n   it is read by the other side,\n   and all is well.\n\n"
CONTRACT = f"""SUPPLY AGREEMENT

{BODY}ARTICLE I
DEFINITIONS

1.1 Affiliates. An affiliate is a company that is controlled by another.

1.2 Late Fees. See Section 1.1 of this Agreement.
12 Main Street is an address, and 4.2 Million dollars is an amount.

ARTICLE II  TERM AND TERMINATION

2.1 Term. It begins today.

EXHIBIT A

Price List

{BODY}"""
RFC = f"""Abstract

{LINES}Table of Contents

   1.  Introduction ......................... 1
   2.  Packet format ........................ 2
     2.1.  Flags    3

1.  Introduction

{LINES}   1. Open the connection and wait until the other side answers it
   2. Close it

2.  Packet format

{LINES}2.1.  Flags

{LINES}Smith & Jones             Standards Track                     [Page 1]

RFC 9999                    Flags                      March 2000

Authors' Addresses

{LINES}"""


def outline(text: str) -> list[tuple[int, str]]:
    return [(heading.level, heading.text) for heading in headings(text)]


def test_a_contract_has_articles_clauses_and_exhibits() -> None:
    assert outline(CONTRACT) == [
        (2, "SUPPLY AGREEMENT"),
        (1, "ARTICLE I DEFINITIONS"),
        (3, "1.1 Affiliates"),
        (3, "1.2 Late Fees"),
        (1, "ARTICLE II TERM AND TERMINATION"),
        (3, "2.1 Term"),
        (1, "EXHIBIT A Price List"),
    ]


@pytest.mark.parametrize("text", [CONTRACT, RFC])
def test_line_endings_do_not_matter(text: str) -> None:
    windows = text.replace("\n", "\r\n")
    assert outline(windows) == outline(text)
    assert title_of(windows) == title_of(text)


def test_a_heading_may_end_the_text() -> None:
    assert outline("1. Fees\n\nThey are due.\n\n2. Term") == [(1, "1. Fees"), (1, "2. Term")]


def test_a_contract_that_lost_its_lines_keeps_its_clauses() -> None:
    flat = " ".join((CONTRACT + BODY * 5).split())
    assert [text for _, text in outline(flat)] == [
        "ARTICLE I DEFINITIONS",
        "1.1 Affiliates",
        "1.2 Late Fees",
        "ARTICLE II TERM AND TERMINATION",
        "2.1 Term",
    ]


def test_an_rfc_has_sections_but_its_contents_lists_and_page_heads_are_none() -> None:
    assert outline(RFC) == [
        (1, "Abstract"),
        (1, "Table of Contents"),
        (1, "1. Introduction"),
        (1, "2. Packet format"),
        (2, "2.1. Flags"),
        (1, "Authors' Addresses"),
    ]


def test_a_novel_has_books_and_chapters_with_their_titles() -> None:
    book = f"BOOK I.\n\nMISS BROOKE.\n\n\nCHAPTER I. Down the Hole\n\n{BODY}"
    text = f"{book}CHAPTER II\n\nIn Fashion\n\n{BODY}Part of it.\n"
    assert outline(text) == [
        (1, "BOOK I. MISS BROOKE"),
        (2, "CHAPTER I. Down the Hole"),
        (2, "CHAPTER II In Fashion"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "1. Fees ............ 3\n2. Term ............ 4\n",
        "\n".join(f"{i}. Short Item" for i in range(1, 9)),
        "and then he said that it was\n4.2 Million dollars, no less, and nobody wondered.\n",
        "he referred to\nSection 3.\nAnd so on.\n",
        "ACME WIDGETS, INC.\n\nBy: somebody\n",
        "He shouted\nSTOP THERE\nbut nobody heard.\n",
        "A table\n\nNAME   AGE   TOWN\n\nof people\n",
        "CONFIDENTIAL TREATMENT\n\ntext\n\n" * 9,
        "17. The Seventeenth\n\nwithout a sixteenth before it\n",
        "    FOO ::= BEGIN\n\nbar\n",
        "",
    ],
)
def test_what_only_looks_like_a_heading_is_none(text: str) -> None:
    assert outline(text) == []


def test_markdown_headings_are_those_outside_of_code() -> None:
    code = "~~~\n# code\n```\n# code\n~~~\n\n"
    text = f"---\ntitle: x\n---\n\n# One #\n\n{code}Two\n===\n\nno\n\n---\n\n   ### Three\n#no\n"
    found = markdown(text)
    assert [(level, title) for _, level, title in found] == [(1, "One"), (1, "Two"), (3, "Three")]
    assert all(text[start:].lstrip("# ").startswith(title) for start, _, title in found)


def test_underlines_have_levels_in_the_order_they_come() -> None:
    text = "====\nBook\n====\n\nPart\n====\n\nChapter\n-------\n\nPart two\n========\n\n"
    text += "A text\n---\n\na  b\n-  -\n"
    assert [(level, title) for _, level, title in underlined(text)] == [
        (1, "Book"),
        (2, "Part"),
        (3, "Chapter"),
        (2, "Part two"),
    ]


def test_other_markup_has_headings_too() -> None:
    assert [h.text for h in asciidoc("= Title\n\n== Part\n\na == b\n")] == ["Title", "Part"]
    assert [h[:2] for h in org("* One\n** Two\n- *no*\n")] == [(0, 1), (6, 2)]
    assert [h.text for h in tex("\\section{A}\ntext \\section no\n")] == ["A"]
    assert [h.level for h in equals_signs("== A ==\n=== B ===\nx == y ==\n")] == [1, 2]


CODE = {
    ".py": ("class A:\n    async def b(self):\n        return 'def c'\n", ["class A", "async def b(self)"]),
    ".rs": (
        "pub fn a<T>(x: T) -> T {\n}\nimpl B {\n    fn c() {}\n}\n",
        ["pub fn a<T>(x: T) -> T", "impl B", "fn c()"],
    ),
    ".js": (
        "export default class A {\n}\nfunction b() {\n}\nfunctional(1)\n",
        ["export default class A", "function b()"],
    ),
    ".c": (
        "static int f(int a)\n{\n  return g(a);\n}\nint h(void);\nx = y(1)\n",
        ["static int f(int a)"],
    ),
    ".java": (
        "public class A {\n    public int b() {\n        c();\n    }\n}\n",
        ["public class A", "public int b()"],
    ),
    ".go": ("func (a *A) b() error {\n}\ntype C struct {\n}\n", ["func (a *A) b() error", "type C struct"]),
}


@pytest.mark.parametrize("suffix", CODE)
def test_source_code_has_its_definitions_as_headings(suffix: str) -> None:
    code, names = CODE[suffix]
    assert [heading.text for heading in signatures(code, suffix)] == names


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (CONTRACT, "SUPPLY AGREEMENT"),
        ("Exhibit 10 SUPPLY AGREEMENT This Supply Agreement is made " + BODY, "SUPPLY AGREEMENT"),
        (f"Request for Comments: 1\n\n               Host MIB\n\nStatus\n\n{BODY}", "Host MIB"),
        (f"The Project Gutenberg EBook of Emma, by Jane Austen\n\n{BODY}", "Emma, by Jane Austen"),
        (f"Reclaiming the money power\n\n{BODY}", "Reclaiming the money power"),
        (f"Chapter 1\n\nTHE HOUSE\n\n{BODY}", None),
        (f"Dear Sir,\n\n{BODY}", None),
        (BODY, None),
        ("", None),
    ],
)
def test_a_title_is_what_stands_above_the_text(text: str, title: str | None) -> None:
    assert title_of(text) == title


def test_a_character_stands_under_the_headings_that_are_still_open() -> None:
    text = "0123456789"
    marks = (Heading(1, 1, "A"), Heading(2, 3, "B"), Heading(4, 2, "C"), Heading(6, 1, "D"))
    document = Document(text, headings=marks)
    paths = [document.section_of(offset) for offset in (0, 1, 3, 5, 9, 10)]
    assert paths == [(), ("A",), ("A", "B"), ("A", "C"), ("D",), ("D",)]
    with pytest.raises(InputError, match="at most 10"):
        document.section_of(11)
    with pytest.raises(InputError, match="ascending order from 0 to 10"):
        Document(text, headings=(Heading(11, 1, "A"),))
    with pytest.raises(InputError, match="levels from 1"):
        Document(text, headings=(Heading(0, 0, "A"),))


def test_headings_come_through_the_child_process(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<h1>One\n<b>and</b></h1>x<h3></h3><video><h1>no</h1></video><h2>Two")
    document = read(tmp_path / "a.html")
    assert document.headings == (Heading(0, 1, "One and"), Heading(12, 2, "Two"))
    assert document.text[12:] == "Two"


def test_word_styles_mark_headings_in_any_language(tmp_path: Path) -> None:
    style = '<w:p><w:pPr><w:pStyle w:val="{}"/></w:pPr><w:r><w:t>{}</w:t></w:r></w:p>'.format
    body = style("Titel", "Top") + style("berschrift2", "Sub") + style("Foot", "no") + style("Mine", "Own")
    named = '<w:style w:styleId="{}"><w:name w:val="{}"/>{}</w:style>'.format
    styles = (
        named("Titel", "Title", "")
        + named("berschrift2", "heading 2", '<w:outlineLvl w:val="1"/>')
        + named("Foot", "TOC Heading", '<w:basedOn w:val="berschrift2"/><w:outlineLvl w:val="9"/>')
        + named("Mine", "mine", '<w:basedOn w:val="berschrift2"/>')
    )
    more = {"word/styles.xml": f"<w:styles {files.NAMESPACE}>{styles}</w:styles>"}
    (tmp_path / "a.docx").write_bytes(files.docx(body, more=more))
    document = read(tmp_path / "a.docx")
    assert document.headings == (Heading(0, 1, "Top"), Heading(5, 2, "Sub"), Heading(14, 2, "Own"))


def test_the_outline_of_a_pdf_leads_to_words_on_its_pages(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2")
    (tmp_path / "a.pdf").write_bytes(
        files.pdf(["One", "x\nTwo and\nmore"], marks=[("One", 0), ("two and more", 1)])
    )
    document = read(tmp_path / "a.pdf")
    assert document.headings == (Heading(0, 1, "One"), Heading(7, 1, "two and more"))
    assert document.section_of(document.text.index("x")) == ("One",)


def test_larger_letters_are_headings_where_a_pdf_has_no_outline(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2")
    page = "20|A Long\n20|Title\n12|" + "Plain text in small letters.\n12|" * 9 + "\n16|Part\n12|More of it."
    (tmp_path / "a.pdf").write_bytes(files.pdf([page], sized=True))
    document = read(tmp_path / "a.pdf")
    assert [(heading.level, heading.text) for heading in document.headings] == [
        (1, "A Long Title"),
        (2, "Part"),
    ]
    assert all(document.text[heading.start :].startswith(heading.text[:4]) for heading in document.headings)
    assert document.title == "A Long Title"


def test_lines_of_many_offsets_are_found_soon() -> None:
    document = Document("line\n" * 400_000)
    started = time.process_time()
    assert [document.line_of(5 * line) for line in range(0, 400_000, 4)] == list(range(1, 400_001, 4))
    assert time.process_time() - started < 5, "seconds"


REPEATED = (
    "1", "1.", " ", "\n", "A", "ABCD ", "A B ", "1. A ", "1. A\n\n", "CHAPTER I\n\n", "1.1 Aa Aa. ", "A\n",
    "a\n===\n\n", "= a =\n", "= = ", "# ", "```\n", "#", ".", '1. "', "\\section{", "*", "-----\n", "def a(",
    "class ", "a(b ", "a a ", "\n                    ", "T his This A B ", "(a) ", "AB CD\n", "\ufb03 ",
)  # fmt: skip


@pytest.mark.parametrize("part", REPEATED)
def test_hostile_text_takes_linear_time(part: str) -> None:
    code = [partial(signatures, suffix=suffix) for suffix in (".py", ".c")]
    finders: list[Callable[[str], object]] = [headings, markdown, underlined, equals_signs, asciidoc, org]
    finders += [tex, title_of, *code]
    for find in finders:
        assert_linear(partial(_found, find, part), 50_000)


def _found(find: Callable[[str], object], part: str, size: int) -> object:
    """All that is found in a text of so many characters, also where it is found on demand."""
    found = find(part * (size // len(part)))
    return list(found) if isinstance(found, Iterator) else found


def test_noise_has_no_headings_outside_of_the_text() -> None:
    draw = random.Random(0)
    for _ in range(50):
        text = "".join(
            draw.choices(["1.", "A", "b", " ", "\n", "CHAPTER", "IV", "#", "=", "Fees. ", "\r\n"], k=500)
        )
        for found in (headings(text), tuple(markdown(text)), tuple(underlined(text)), signatures(text, ".c")):
            assert Document(text, headings=found).headings == found
