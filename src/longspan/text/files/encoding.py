"""The encoding of text that does not name one, guessed from a sample of bounded size."""

import codecs
import re
import unicodedata
from collections import Counter

SAMPLE = 1 << 16
"""Bytes from the first that is not UTF-8; and a few before it."""
BEFORE = 1 << 12
HEAD = 1 << 13
# fmt: off
LATIN = (
    "windows-1252", "windows-1250", "windows-1254", "windows-1257", "iso8859-2", "iso8859-15", "macroman",
    "cp850",
)
OTHERS = (
    "windows-1251", "koi8-r", "cp866", "windows-1253", "windows-1255", "windows-1256", "shift_jis", "euc-jp",
    "gb18030", "big5", "cp949",
)
# fmt: on
"""What files are still written in; of more choices, the wrong one would be taken more often."""
USUAL = "cp1252"
SPARSE = 0.3
"""Of the letters: fewer outside of ASCII, and the script is Latin."""
SCATTERED = 0.01
"""Of the letters: fewer, and they are quotation marks, dashes and names in English."""
FEW = 4
"""Bytes that say nothing of the language."""
MOST_CONTROLS = 0.01
BLANKS = "\t\n\r\f\ufeff"
UNLIKELY = ("Cc", "Cn", "Co", "Cs")
"""Categories of controls, of characters that do not exist, and of private ones."""
UNLIKE_ASCII = 0.2
"""Of the bytes of UTF-16, at least; of text with a stray NUL, fewer."""
SHARE = 0.8
_EAST_ASIAN = range(0x2E80, 0xD7B0), range(0xFF00, 0xFFF0)
_HIGH = re.compile(rb"[\x80-\xff]")
_LETTER = re.compile(rb"[A-Za-z\x80-\xff]")
_CONTROL = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
_SEQUENCE = re.compile(rb"[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")


def guessed(data: bytes, wrong: int) -> str:
    """The codec of text whose byte at `wrong` is not UTF-8; "utf-8" if it is UTF-8 but for some bytes."""
    sample = data[max(0, wrong - BEFORE) : wrong + SAMPLE]
    sequences = _SEQUENCE.findall(sample)
    high, letters = len(_HIGH.findall(sample)), len(_LETTER.findall(sample))
    if 2 * sum(map(len, sequences)) > high or is_binary(sample):
        return "utf-8"
    sparse = high < SPARSE * letters
    if high < max(FEW, SCATTERED * letters):
        return USUAL
    import chardet  # models of languages, which most files do not need

    choices = LATIN if sparse else LATIN + OTHERS
    found = chardet.detect(sample.replace(b"\0", b" "), include_encodings=choices, compat_names=False)[
        "encoding"
    ]
    return codecs.lookup(found or USUAL).name


def is_binary(sample: bytes) -> bool:
    """Whether bytes that are not UTF-8 are no text either: too many of them are controls."""
    return len(_CONTROL.findall(sample)) > 1 + MOST_CONTROLS * len(sample)


def unmarked_utf16(data: bytes) -> str:
    """The codec of UTF-16 that begins without a byte order mark; "" of any other data.

    >>> unmarked_utf16("Grüße".encode("utf-16-le")), unmarked_utf16(b"one \\0 NUL")
    ('utf-16-le', '')
    """
    head = data[:HEAD]
    if b"\0" not in head or len(data) % 2:
        return ""
    if len(_HIGH.findall(head)) + len(_CONTROL.findall(head)) < UNLIKE_ASCII * len(head):
        return ""
    # The byte that is NUL in ASCII, and the same in most letters of other scripts, comes second in LE.
    order = sorted(("utf-16-le", "utf-16-be"), key=lambda codec: len({*head[codec == "utf-16-le" :: 2]}))
    return next((codec for codec in order if _is_text(head, codec)), "")


def _is_text(head: bytes, codec: str) -> bool:
    """Whether no character is a control or unassigned, and nearly all are of ASCII and one other script."""
    try:
        text = codecs.getincrementaldecoder(codec)().decode(head)
    except UnicodeDecodeError:
        return False
    if any(char not in BLANKS and unicodedata.category(char) in UNLIKELY for char in text):
        return False
    pages = Counter(_page(ord(char)) for char in text)
    latin = pages.pop(0, 0)
    return latin + max(pages.values(), default=0) >= SHARE * len(text)


def _page(code: int) -> int:
    """Scripts have pages of 256 characters; those of East Asia share theirs."""
    return -1 if any(code in pages for pages in _EAST_ASIAN) else code >> 8
