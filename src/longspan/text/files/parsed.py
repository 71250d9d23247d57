"""What every reader returns. Child processes import this, so it imports next to nothing."""

from typing import NamedTuple

from longspan.text.files.places import NOWHERE, Places

LONGEST_TITLE = 1000
LONGEST_HEADING = 120
MOST_HEADINGS = 100_000
LONGEST_STAMP = 100
"""Characters on a scanned page that are only its number, or what an archive has stamped on it."""
LIMIT = "Raise {}, or {} of Limits in Python."
USE_OCR = "Read it with OCR: --ocr, or ocr=True in Python."


class Heading(NamedTuple):
    """A heading: the offset where it begins, its level from 1 and its words."""

    start: int
    level: int
    text: str


class Parsed(NamedTuple):
    """The content of a file."""

    text: str
    pages: tuple[int, ...] = ()
    "The offset in `text` where each page begins; nothing where the format has no pages."
    title: str | None = None
    replaced: int = 0
    "How many U+FFFD in the text stand for bytes that could not be decoded."
    headings: tuple[Heading, ...] = ()
    "In the order of the text."
    empty_pages: int = 0
    "Pages that show something, but hold no text, or only a stamp on a picture."
    hidden: int = 0
    "Characters that were left out because a reader of the file does not see them."
    places: Places = NOWHERE
    "Where the text stands in the file, if neither its own lines nor its pages say it."


class Refusal(Exception):
    """Why a file is not read, and what helps; the caller adds which file it is."""

    def __init__(self, reason: str, repair: str = "") -> None:
        super().__init__(reason)
        self.reason, self.repair = reason, repair


def too_long(characters: int) -> Refusal:
    """The refusal of a file with more than `characters` of text."""
    return Refusal(
        f"it holds more than {characters:,} characters", LIMIT.format("--max-characters", "characters")
    )


def as_title(text: str | None) -> str | None:
    """A title on one line, or None if it is empty.

    >>> as_title(" A\\n title ")
    'A title'
    """
    return " ".join((text or "")[:LONGEST_TITLE].split()) or None


def as_heading(text: str) -> str:
    """A heading on one line, cut after a word.

    >>> as_heading(" 7.2\\tLate\\n fees ")
    '7.2 Late fees'
    """
    words = " ".join(text[: 10 * LONGEST_HEADING].split())
    return words if len(words) <= LONGEST_HEADING else words[:LONGEST_HEADING].rpartition(" ")[0]
