"""Plain text: the file's own characters, so that offsets lead back to the file."""

import codecs

from longspan.text.files.encoding import guessed, is_binary, unmarked_utf16
from longspan.text.files.parsed import Parsed, as_title

MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
MOST_REPLACED = 0.1
SEVERAL_BYTES = ("utf-16", "shift_jis", "euc_", "gb", "big5", "cp9")
"""Codecs whose text may by chance be valid UTF-8."""


def decode(data: bytes, declared: str = "") -> tuple[str, int]:
    """The text without its byte order mark, and how many U+FFFD stand for invalid bytes.

    The mark names the encoding; without a mark, text is UTF-8 if it is valid, else as `declared`, else as
    its letters suggest. What is declared as an encoding of several bytes is decoded so.

    >>> decode("gekündigt, fällig am Dienstag".encode("cp1252"))
    ('gekündigt, fällig am Dienstag', 0)
    """
    mark, codec = next((pair for pair in MARKS if data.startswith(pair[0])), (b"", ""))
    body = memoryview(data)[len(mark) :]
    codec = codec or (declared if declared.startswith(SEVERAL_BYTES) else unmarked_utf16(data))
    try:
        return str(body, codec or "utf-8"), 0
    except UnicodeDecodeError as error:
        codec = codec or (declared if declared not in ("", "utf-8") else guessed(data, error.start))
    text = str(body, codec, "replace")
    count = text.count("\ufffd")
    genuine = str(body, codec, "ignore").count("\ufffd") if count else 0
    return text, count - genuine


def parse(data: bytes, *, titled: bool = False) -> Parsed:
    """The text unchanged; `titled`: a Markdown heading on its first line is the title."""
    text, replaced = decode(data)
    first = text[:2000].lstrip().partition("\n")[0]
    title = as_title(first[2:].strip(" #\r")) if titled and first.startswith("# ") else None
    return Parsed(text, title=title, replaced=replaced)


def looks_binary(head: bytes) -> bool:
    """Whether the first bytes of a file are no text: they hold NUL, or controls among what is not UTF-8.

    >>> looks_binary(b"\\x7fELF\\x02\\x01\\x01\\x00"), looks_binary("Привет".encode("cp1251"))
    (True, False)
    """
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or unmarked_utf16(head):
        return False
    text = head.decode("utf-8", "replace")
    replaced = text.count("\ufffd")
    return "\0" in text or (replaced > 1 + MOST_REPLACED * len(text) and is_binary(head))
