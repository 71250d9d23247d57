"""PDF: the text of every page, by Chromium's PDFium."""

from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from typing import Any, BinaryIO

from longspan.text.files import pdf_headings
from longspan.text.files.parsed import Parsed, Refusal, as_title, too_long
from longspan.text.files.pdf_headings import Bookmark, Line

MOST_PAGES = 100_000
MOST_LINES_MEASURED = 100_000
BETWEEN_PAGES = "\n\n"
_HYPHENS = "\ufffe\x02"
"""How PDFium writes a hyphen at the end of a line inside a word."""


def parse(file: BinaryIO, characters: int) -> Parsed:
    """All pages in order; a page that cannot be read is an error, never left out."""
    try:
        pypdfium2: Any = import_module("pypdfium2")
    except ImportError:
        raise Refusal("reading PDFs needs pypdfium2", "Install it: pip install longspan[pdf]") from None

    try:
        document = pypdfium2.PdfDocument(file.read())
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise Refusal("it is encrypted", "Save it without a password.") from None
        raise Refusal(f"it is not a whole PDF ({error})", "Download or save it again.") from None
    count = len(document)
    if count > MOST_PAGES:
        raise Refusal(f"it says that it has {count:,} pages, more than {MOST_PAGES:,}")
    texts: list[str] = []
    pages: list[int] = []
    lines: list[Line] = []
    size = 0
    for number in range(count):
        try:
            text, measured = _page(document, number, size, characters)
        except pypdfium2.PdfiumError as error:
            raise Refusal(
                f"its page {number + 1} of {count} is damaged ({error})", "Save it again."
            ) from None
        pages.append(size)
        texts.append(text)
        lines += measured if len(lines) < MOST_LINES_MEASURED else []
        size += len(text) + len(BETWEEN_PAGES)
    if not any(texts):
        reason = f"none of its {count} pages holds text, only pictures perhaps"
        raise Refusal(reason, "Let a program for text recognition (OCR) add the text.")
    title = as_title(document.get_metadata_dict().get("Title"))
    whole = BETWEEN_PAGES.join(texts)
    headings = pdf_headings.from_outline(_bookmarks(document), whole, pages)
    headings = headings or pdf_headings.from_letters(lines, pages)
    return Parsed(whole, tuple(pages), title, headings=tuple(headings))


def _page(document: Any, number: int, before: int, characters: int) -> tuple[str, list[Line]]:
    """The text of a page, its line breaks as everywhere else, and its lines."""
    page = document[number]
    try:
        content = page.get_textpage()
        try:
            if before + content.count_chars() > characters:
                raise too_long(characters)
            return _text(content, before)
        finally:
            content.close()
    finally:
        page.close()


def _text(content: Any, before: int) -> tuple[str, list[Line]]:
    """The text of a page that begins after `before` characters, words joined again at the ends of lines."""
    raw: Any = import_module("pypdfium2.raw")
    original = str(content.get_text_range())
    parts: list[str] = []
    lines: list[Line] = []
    place = size = 0
    box = raw.FS_RECTF()
    for number, line in enumerate(original.replace("\r\n", "\n").replace("\r", "\n").split("\n")):
        index = raw.FPDFText_GetCharIndexFromTextIndex(content, place)
        known = index >= 0 and raw.FPDFText_GetLooseCharBox(content, index, box)
        joined = bool(parts) and parts[-1][-1:] in tuple(_HYPHENS)
        if joined:
            parts[-1] = parts[-1][:-1]
            size -= 1
        elif number:
            parts.append("\n")
            size += 1
        if not joined:
            lines.append(Line(before + size, line, box.top - box.bottom if known else 0.0))
        parts.append(line)
        size += len(line)
        place += len(line) + 2
    whole = "".join(parts)
    text = whole.strip()
    cut = len(whole) - len(whole.lstrip())
    return text, [line._replace(start=max(before, line.start - cut)) for line in lines]


def _bookmarks(document: Any) -> Iterator[Bookmark]:
    for entry in islice(document.get_toc(), pdf_headings.MOST_BOOKMARKS):
        target = entry.get_dest()
        page = target.get_index() if target else None
        if page is not None:
            yield Bookmark(entry.get_title(), entry.level + 1, page)
