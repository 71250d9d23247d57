"""PDF: the text of every page, by Chromium's PDFium."""

import math
from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from typing import Any, BinaryIO

from longspan.text.files import pdf_headings
from longspan.text.files.ocr import recognize
from longspan.text.files.parsed import LONGEST_STAMP, USE_OCR, Parsed, Refusal, as_title, too_long
from longspan.text.files.pdf_headings import Bookmark, Line

MOST_PAGES = 100_000
MOST_LINES_MEASURED = 100_000
MOST_PICTURES = 100
"""Of a page that are looked at."""
DOTS_PER_INCH = 300
MOST_DOTS = 12_000_000
BETWEEN_PAGES = "\n\n"
_HYPHENS = "\ufffe\x02"
"""How PDFium writes a hyphen at the end of a line inside a word."""


def parse(file: BinaryIO, characters: int, ocr: str = "") -> Parsed:
    """All pages in order; a page that cannot be read is an error, never left out.

    Pages that show something but hold no text are counted, or recognized in the languages that `ocr` names.
    """
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
    size = empty = 0
    for number in range(count):
        try:
            text, measured, missing = _page(document, number, size, characters, ocr)
        except pypdfium2.PdfiumError as error:
            raise Refusal(
                f"its page {number + 1} of {count} is damaged ({error})", "Save it again."
            ) from None
        pages.append(size)
        texts.append(text)
        empty += missing
        lines += measured if len(lines) < MOST_LINES_MEASURED else []
        size += len(text) + len(BETWEEN_PAGES)
    if not any(texts):
        reason = f"none of its {count} pages holds text, only pictures perhaps"
        raise Refusal(reason, "" if ocr else USE_OCR)
    title = as_title(document.get_metadata_dict().get("Title"))
    whole = BETWEEN_PAGES.join(texts)
    headings = pdf_headings.from_outline(_bookmarks(document), whole, pages)
    headings = headings or pdf_headings.from_letters(lines, pages)
    return Parsed(whole, tuple(pages), title, 0, tuple(headings), empty)


def _page(document: Any, number: int, before: int, characters: int, ocr: str) -> tuple[str, list[Line], bool]:
    """The text of a page, its line breaks as everywhere else, its lines, and whether more is to be seen."""
    page = document[number]
    try:
        content = page.get_textpage()
        try:
            if before + content.count_chars() > characters:
                raise too_long(characters)
            text, lines = _text(content, before)
        finally:
            content.close()
        missing = _is_picture(page) if text else next(page.get_objects(max_depth=1), None) is not None
        missing = missing and len(text) <= LONGEST_STAMP
        if missing and ocr and (recognized := recognize(_drawn(page), ocr)):
            text, lines, missing = recognized, [], False
            if before + len(text) > characters:
                raise too_long(characters)
        return text, lines, missing
    finally:
        page.close()


def _is_picture(page: Any) -> bool:
    """Whether a picture covers most of a page."""
    raw: Any = import_module("pypdfium2.raw")
    whole = page.get_width() * page.get_height()
    pictures = page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=3)
    for left, bottom, right, top in (each.get_bounds() for each in islice(pictures, MOST_PICTURES)):
        if (right - left) * (top - bottom) > whole / 2:
            return True
    return False


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


def _drawn(page: Any) -> bytes:
    """A page as a gray picture in the format PGM, with few enough dots for a page of any size."""
    scale = min(DOTS_PER_INCH / 72, math.sqrt(MOST_DOTS / max(1.0, page.get_width() * page.get_height())))
    bitmap = page.render(scale=scale, grayscale=True)
    data, stride = bytes(bitmap.buffer), bitmap.stride
    rows = (data[row * stride : row * stride + bitmap.width] for row in range(bitmap.height))
    return b"P5 %d %d 255\n" % (bitmap.width, bitmap.height) + b"".join(rows)


def _bookmarks(document: Any) -> Iterator[Bookmark]:
    for entry in islice(document.get_toc(), pdf_headings.MOST_BOOKMARKS):
        target = entry.get_dest()
        page = target.get_index() if target else None
        if page is not None:
            yield Bookmark(entry.get_title(), entry.level + 1, page)
