"""Pictures: the text that tesseract recognizes in them, if the user asks for it."""

from typing import BinaryIO

from longspan.text.files.ocr import recognize
from longspan.text.files.parsed import USE_OCR, Parsed, Refusal, too_long


def parse(file: BinaryIO, characters: int, ocr: str = "") -> Parsed:
    """The recognized text; `ocr` names the languages."""
    if not ocr:
        raise Refusal("it is a picture", USE_OCR)
    text = recognize(file.read(), ocr)
    if len(text) > characters:
        raise too_long(characters)
    return Parsed(text, empty_pages=not text)
