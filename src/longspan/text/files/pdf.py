"""PDF: the text of every page, by Chromium's PDFium."""

from importlib import import_module
from typing import Any, BinaryIO

from longspan.text.files.parsed import Parsed, Refusal, as_title, too_long

MOST_PAGES = 100_000
BETWEEN_PAGES = "\n\n"
_HYPHENS = ("\ufffe\r\n", "\x02\r\n")
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
    size = 0
    for number in range(count):
        try:
            text = _page(document, number, size, characters)
        except pypdfium2.PdfiumError as error:
            raise Refusal(
                f"its page {number + 1} of {count} is damaged ({error})", "Save it again."
            ) from None
        pages.append(size)
        texts.append(text)
        size += len(text) + len(BETWEEN_PAGES)
    if not any(texts):
        reason = f"none of its {count} pages holds text, only pictures perhaps"
        raise Refusal(reason, "Let a program for text recognition (OCR) add the text.")
    title = document.get_metadata_dict().get("Title")
    return Parsed(BETWEEN_PAGES.join(texts), tuple(pages), as_title(title))


def _page(document: Any, number: int, before: int, characters: int) -> str:
    """The text of a page, its line breaks as everywhere else."""
    page = document[number]
    try:
        content = page.get_textpage()
        try:
            if before + content.count_chars() > characters:
                raise too_long(characters)
            text = str(content.get_text_range())
        finally:
            content.close()
    finally:
        page.close()
    for hyphen in _HYPHENS:
        text = text.replace(hyphen, "")
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()
