"""Files to text with offsets, pages and headings."""

import os
import re
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TypeVar

from longspan.errors import DocumentError, bad, unreadable, whole
from longspan.text.files import plain, process, regular
from longspan.text.files.kinds import AS_THEY_ARE, HEAD, PARSED, kind_of
from longspan.text.files.parsed import LIMIT, Heading, Parsed, Refusal, too_long
from longspan.text.files.places import LINE, NOWHERE, Places
from longspan.text.files.process import Limits, Running
from longspan.text.outline import outline

__all__ = ["Document", "Heading", "Limits", "read", "read_each", "read_many", "read_stream"]

T = TypeVar("T")
DEFAULT = Limits()
WHOLE = Limits(characters=16 << 20)
"""For a text that a model reads at once: some hundred bytes for each token. An index takes longer ones."""
SMALL = 1 << 14
"""Bytes that a file counts for at least when files are read ahead."""
LARGE = 1 << 24
"""Bytes of the files that are read at once, even if nothing is to be read ahead; a larger file goes alone."""


@dataclass(frozen=True, repr=False)
class Document:
    """A text and where it comes from; every offset counts characters of `text`.

    >>> document = Document("1 Fees\\nThey are due.", headings=(Heading(0, 1, "1 Fees"),))
    >>> document.line_of(9), document.section_of(9)
    (2, ('1 Fees',))
    """

    text: str
    source: Path | None = None
    pages: tuple[int, ...] = ()
    "Where each page begins; empty if the format has no pages."
    title: str | None = None
    replaced: int = 0
    "How many U+FFFD in the text stand for bytes that could not be decoded."
    kind: str = "text"
    '"text", "markdown", "html", "pdf", "docx", "pptx", "xlsx", "odt", "rtf", "epub", "eml" or "ipynb".'
    headings: tuple[Heading, ...] = ()
    "The headings in the order of the text."
    empty_pages: int = 0
    "Pages that show something, but hold no text: `gap` says so."
    hidden: int = 0
    "Characters that were left out because a reader of the file does not see them."
    places: Places = NOWHERE
    "Where the text stands in the file, in formats that show neither lines nor pages."

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise bad("text", "a string", type(self.text).__name__)
        if list(self.pages) != sorted(self.pages) or (self.pages and self.pages[0] != 0):
            raise bad("pages", "ascending offsets from 0", self.pages)
        if self.pages and self.pages[-1] > len(self.text):
            raise bad("pages", f"offsets up to {len(self.text)}", self.pages[-1])
        starts = [heading.start for heading in self.headings]
        if starts != sorted(starts) or (starts and not 0 <= starts[0] <= starts[-1] <= len(self.text)):
            raise bad("headings", f"headings in ascending order from 0 to {len(self.text)}", starts[:9])
        if any(heading.level < 1 for heading in self.headings):
            raise bad("headings", "headings of levels from 1", min(h.level for h in self.headings))

    def page_of(self, offset: int) -> int | None:
        """The page, from 1, that holds the character at `offset`; None where there are no pages.

        Blank lines between two pages belong to the first.
        """
        place = self._checked(offset)
        return bisect_right(self.pages, place) if self.pages else None

    def line_of(self, offset: int) -> int | None:
        """The line of the file, from 1, that holds the character at `offset`; None if a file has no lines."""
        place = self._checked(offset)
        if self.kind in AS_THEY_ARE:
            return bisect_right(self._lines, place)
        return self.places.number(place, LINE)

    def place_of(self, offset: int) -> str:
        """Where a person finds the character at `offset`: "line 12", "page 3", "sheet Prices, row 7"."""
        place = self._checked(offset)
        if self.kind in AS_THEY_ARE:
            return f"{LINE} {self.line_of(place)}"
        return self.places.label(place) or (f"page {self.page_of(place)}" if self.pages else "")

    def section_of(self, offset: int) -> tuple[str, ...]:
        """The headings that the character at `offset` stands under, from the outermost to its own."""
        number = bisect_right(self._starts, self._checked(offset)) - 1
        path: list[str] = []
        while number >= 0:
            path.append(self.headings[number].text)
            number = self._parents[number]
        return tuple(reversed(path))

    @property
    def gap(self) -> str:
        """What is missing from the text, or ""."""
        parts = []
        if self.empty_pages:
            pages = max(1, len(self.pages))
            parts.append(f"has no text on {self.empty_pages:,} of {pages:,} pages; try --ocr")
        if self.replaced:
            parts.append(f"holds {_characters(self.replaced)} that could not be decoded")
        if self.hidden:
            parts.append(f"{_characters(self.hidden)} of hidden text left out")
        return "; ".join(parts)

    @cached_property
    def _lines(self) -> Sequence[int]:
        """Where each line begins."""
        return array("q", chain((0,), (match.end() for match in re.finditer("\n", self.text))))

    @cached_property
    def _starts(self) -> Sequence[int]:
        return array("q", [heading.start for heading in self.headings])

    @cached_property
    def _parents(self) -> Sequence[int]:
        """For each heading the number of the one it stands under, or -1."""
        parents = array("q")
        open_: list[int] = []
        for number, heading in enumerate(self.headings):
            while open_ and self.headings[open_[-1]].level >= heading.level:
                open_.pop()
            parents.append(open_[-1] if open_ else -1)
            open_.append(number)
        return parents

    def _checked(self, offset: int) -> int:
        return whole("offset", offset, 0, most=len(self.text))

    def __len__(self) -> int:
        return len(self.text)

    def __repr__(self) -> str:
        where = "" if self.source is None else f"{str(self.source)!r}, "
        pages = f", {len(self.pages):,} pages" if self.pages else ""
        return f"Document({where}{self.kind}, {len(self.text):,} characters{pages})"


def read(path: str | os.PathLike[str], *, limits: Limits = DEFAULT, ocr: bool | str = False) -> Document:
    """The text of a file; all but plain text and Markdown is parsed in a child process, within `limits`.

    Plain text and Markdown keep every character of the file except a byte order mark. With `ocr`, the text of
    pictures and of PDF pages without text is recognized by tesseract; `"eng+deu"` names languages.
    """
    return _read(Path(path), limits, _languages(ocr), Running())


def _read(source: Path, limits: Limits, languages: str, running: Running) -> Document:
    try:
        with regular.opened(source) as file:
            size = os.fstat(file.fileno()).st_size
            check_size(size, limits)
            kind = kind_of(source, regular.read(file, HEAD))
            if kind in PARSED:
                parsed = process.parse(kind, file, size, limits, languages, running)
            else:
                file.seek(0)
                parsed = _plain(file, kind, limits)
    except Refusal as refusal:
        raise unreadable(source, refusal.reason, refusal.repair) from None
    except OSError as error:
        raise unreadable(source, error.strerror or str(error)) from None
    title, headings = outline(parsed, kind, source.suffix.lower())
    return Document(
        parsed.text,
        source,
        parsed.pages,
        title,
        parsed.replaced,
        kind,
        headings,
        parsed.empty_pages,
        parsed.hidden,
        parsed.places,
    )


def read_stream(file: BinaryIO, *, limits: Limits = DEFAULT) -> Document:
    """Plain text from an open stream, such as standard input, read to its end."""
    try:
        parsed = _plain(file, "text", limits)
    except Refusal as refusal:
        raise unreadable("-", refusal.reason, refusal.repair) from None
    title, headings = outline(parsed, "text", "")
    return Document(parsed.text, None, (), title, parsed.replaced, headings=headings)


def read_many(
    paths: Iterable[str | os.PathLike[str]],
    *,
    limits: Limits = DEFAULT,
    ocr: bool | str = False,
    workers: int = 2,
) -> Iterator[Document | DocumentError]:
    """The documents in order, a few read ahead; a file that cannot be read yields its error instead."""
    return read_each(paths, lambda document: document, limits=limits, ocr=ocr, workers=workers)


def read_each(
    paths: Iterable[str | os.PathLike[str]],
    step: Callable[[Document], T],
    *,
    limits: Limits = DEFAULT,
    ocr: bool | str = False,
    workers: int = 2,
    ahead: int = 0,
) -> Generator[T | DocumentError, None, None]:
    """What `step` makes of each document, in the thread that reads it; about `ahead` bytes are read ahead.

    Whatever goes wrong with one file is its error, and ends nothing else. To close the generator ends what is
    being read.
    """
    most, languages = 2 * whole("workers", workers, 1, most=256), _languages(ocr)
    running = Running()

    def attempt(path: str | os.PathLike[str]) -> T | DocumentError:
        try:
            document = _read(Path(path), limits, languages, running)
            return unreadable(path, "reading was stopped") if running.stopped else step(document)
        except DocumentError as error:
            return error
        except Exception as error:  # such as a MemoryError, or a mistake of ours
            return unreadable(path, f"it cannot be processed ({type(error).__name__}: {error})")

    pool = ThreadPoolExecutor(workers)
    waiting: deque[tuple[int, Future[T | DocumentError]]] = deque()
    total = 0
    try:
        for path in paths:
            size = max(_size(path), SMALL)
            while waiting and total + size > (ahead if len(waiting) >= most else max(ahead, LARGE)):
                total -= waiting[0][0]
                yield waiting.popleft()[1].result()
            total += size
            waiting.append((size, pool.submit(attempt, path)))
        while waiting:
            yield waiting.popleft()[1].result()
    finally:
        running.stop()
        pool.shutdown(wait=False, cancel_futures=True)


def _characters(count: int) -> str:
    return f"{count:,} character{'s' * (count != 1)}"


def _size(path: str | os.PathLike[str]) -> int:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return 0


def _languages(ocr: bool | str) -> str:
    if isinstance(ocr, bool):
        return "eng" if ocr else ""
    if not isinstance(ocr, str) or not re.fullmatch(r"[A-Za-z]\w{1,20}(?:\+[A-Za-z]\w{1,20}){0,9}", ocr):
        raise bad("ocr", 'True, False or languages such as "eng+deu"', ocr)
    return ocr


def check_size(size: int, limits: Limits) -> None:
    """Refuse a file of more bytes than the limits admit."""
    if size > limits.bytes:
        reason = f"its {size:,} bytes are more than {limits.bytes:,}"
        raise Refusal(reason, LIMIT.format("--max-file-size", "bytes"))


def _plain(file: BinaryIO, kind: str, limits: Limits) -> Parsed:
    data = regular.read(file, limits.bytes + 1)
    if len(data) > limits.bytes:  # some files of /proc claim to be empty
        raise Refusal(f"it has more than {limits.bytes:,} bytes", LIMIT.format("--max-file-size", "bytes"))
    parsed = plain.parse(data, titled=kind == "markdown")
    if len(parsed.text) > limits.characters:
        raise too_long(limits.characters)
    return parsed
