"""Files to text with offsets, pages and headings."""

import os
import re
import stat
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO, TypeVar

from longspan.errors import DocumentError, bad, unreadable, whole
from longspan.text.files import plain, process
from longspan.text.files.kinds import HEAD, PARSED, kind_of
from longspan.text.files.parsed import LIMIT, Heading, Parsed, Refusal, too_long
from longspan.text.files.process import Limits
from longspan.text.outline import outline

__all__ = ["Document", "Heading", "Limits", "read", "read_each", "read_many", "read_stream"]

T = TypeVar("T")
DEFAULT = Limits()
SMALL = 1 << 14
"""Bytes that a file counts for at least when files are read ahead."""


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

    def line_of(self, offset: int) -> int:
        """The line, from 1, that holds the character at `offset`."""
        return bisect_right(self._lines, self._checked(offset))

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
        if not self.empty_pages:
            return ""
        return f"has no text on {self.empty_pages:,} of {max(1, len(self.pages)):,} pages; try --ocr"

    @cached_property
    def _lines(self) -> Sequence[int]:
        """Where each line begins."""
        return array("q", accumulate((len(line) + 1 for line in self.text.split("\n")[:-1]), initial=0))

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
    languages = _languages(ocr)
    source = Path(path)
    try:
        with _opened(source) as file:
            size = os.fstat(file.fileno()).st_size
            if size > limits.bytes:
                raise Refusal(
                    f"its {size:,} bytes are more than {limits.bytes:,}",
                    LIMIT.format("--max-file-size", "bytes"),
                )
            kind = kind_of(source, file.read(HEAD))
            if kind in PARSED:
                parsed = process.parse(kind, file, size, limits, languages)
            else:
                file.seek(0)
                parsed = _plain(file, kind, limits)
    except Refusal as refusal:
        raise unreadable(source, refusal.reason, refusal.repair) from None
    except OSError as error:
        raise unreadable(source, error.strerror or str(error)) from None
    title, headings = outline(parsed, kind, source.suffix.lower())
    return Document(
        parsed.text, source, parsed.pages, title, parsed.replaced, kind, headings, parsed.empty_pages
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
    """What `step` makes of each document, in the thread that reads it; about `ahead` bytes are read ahead."""
    most = 2 * whole("workers", workers, 1, most=256)

    def attempt(path: str | os.PathLike[str]) -> T | DocumentError:
        try:
            document = read(path, limits=limits, ocr=ocr)
        except DocumentError as error:
            return error
        return step(document)

    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[tuple[int, Future[T | DocumentError]]] = deque()
        total = 0
        try:
            for path in paths:
                size = max(_size(path), SMALL)
                total += size
                waiting.append((size, pool.submit(attempt, path)))
                while len(waiting) > most and total > ahead:
                    size, future = waiting.popleft()
                    total -= size
                    yield future.result()
            while waiting:
                yield waiting.popleft()[1].result()
        finally:
            for _, future in waiting:
                future.cancel()


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


def _opened(path: Path) -> BinaryIO:
    """Open a regular file; pipes and devices are never opened, let alone waited for."""
    try:
        status = path.stat()
    except ValueError:
        raise Refusal("its name holds a NUL character") from None
    _check_regular(status)
    # If a pipe has taken the file's place since, O_NONBLOCK keeps us from waiting for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = os.fdopen(os.open(path, flags), "rb")
    try:
        _check_regular(os.fstat(file.fileno()))
    except Refusal:
        file.close()
        raise
    return file


def _check_regular(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise Refusal("it is a folder", "Use walk() to find the files in it.")
    if not stat.S_ISREG(status.st_mode):
        raise Refusal("it is a pipe, a device or a socket, not a file")


def _plain(file: BinaryIO, kind: str, limits: Limits) -> Parsed:
    data = file.read(limits.bytes + 1)
    if len(data) > limits.bytes:  # some files of /proc claim to be empty
        raise Refusal(f"it has more than {limits.bytes:,} bytes", LIMIT.format("--max-file-size", "bytes"))
    parsed = plain.parse(data, titled=kind == "markdown")
    if len(parsed.text) > limits.characters:
        raise too_long(limits.characters)
    return parsed
