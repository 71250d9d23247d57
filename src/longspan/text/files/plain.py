"""Plain text: the file's own characters, so that offsets lead back to the file."""

import codecs

from longspan.text.files.parsed import Parsed, as_title

MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
MOST_REPLACED = 0.1


def decode(data: bytes, otherwise: str = "utf-8") -> tuple[str, int]:
    """The text without its byte order mark, and how many U+FFFD stand for invalid bytes.

    The mark names the encoding; text without a mark is decoded as `otherwise`.

    >>> decode(b"caf\\xe9 au lait")
    ('caf\\ufffd au lait', 1)
    """
    marked = [pair for pair in MARKS if data.startswith(pair[0])]
    mark, codec = marked[0] if marked else (b"", otherwise)
    body = memoryview(data)[len(mark) :]
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
    """Whether the first bytes of a file are not text: they hold NUL, or a tenth of them is not UTF-8.

    >>> looks_binary(b"\\x7fELF\\x02\\x01\\x01\\x00"), looks_binary("Grüße".encode())
    (True, False)
    """
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    text, replaced = decode(head)
    return "\0" in text or replaced > 1 + MOST_REPLACED * len(text)
