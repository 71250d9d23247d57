"""Running text from words and breaks: white space is collapsed while writing, in linear time."""

from longspan.text.files.parsed import Heading, as_heading, too_long
from longspan.text.files.places import Marks, Places

LONGEST_IN_MARKUP = 400
"""Characters; what is marked as a heading and is longer was marked for its looks, or never closed."""


class Flow:
    """A text of at most `characters`, without white space at its ends or around its line breaks.

    >>> flow = Flow(100)
    >>> flow.words(" one  two "), flow.lines(2), flow.words("three"), flow.lines(1)
    (None, None, None, None)
    >>> flow.text
    'one two\\n\\nthree'
    """

    def __init__(self, characters: int) -> None:
        self._parts: list[str] = []
        self._size = 0
        self._most = characters
        self._between = ""  # white space before the next word, if any
        self._heading: tuple[int, int] | None = None  # its level, and the number of its first part
        self.headings: list[Heading] = []
        self.hidden = 0
        self._place: tuple[str, int] | None = None
        self._marks = Marks()

    def words(self, text: str) -> None:
        """Write text in which every run of white space is a space."""
        words = text.split()
        if not words:
            self.space(" " if text else "")
            return
        if text[0].isspace():
            self.space(" ")
        self._write(" ".join(words))
        if text[-1].isspace():
            self.space(" ")

    def verbatim(self, text: str) -> None:
        """Write text whose white space counts."""
        if text:
            self._write(text)

    def space(self, mark: str) -> None:
        """Write a space or a tab, unless a line ends here."""
        if "\n" not in self._between and len(mark) and self._between != "\t":
            self._between = mark

    def lines(self, count: int) -> None:
        """Write line breaks, so that at least `count` stand here."""
        self._between = "\n" * max(count, self._between.count("\n"))

    def hide(self, text: str) -> None:
        """Count the characters of text that is not shown, but for white space."""
        self.hidden += sum(map(len, text.split()))

    def place(self, unit: str, number: int) -> None:
        """What is written from here on stands there in the file."""
        self._place = unit, number

    def begin_heading(self, level: int) -> None:
        """What is written from here on is a heading."""
        self.end_heading()
        self._heading = level, len(self._parts)

    def end_heading(self, keep: bool = True) -> None:
        """The heading, if one is open, ends here; without words, or if it is not kept, it was none."""
        if self._heading is None:
            return
        level, first = self._heading
        self._heading = None
        parts = "".join(self._parts[first:]).lstrip() if keep else ""
        if (text := as_heading(parts)) and len(parts) <= LONGEST_IN_MARKUP:
            self.headings.append(Heading(self._size - len(parts), level, text))

    @property
    def text(self) -> str:
        """All that was written."""
        return "".join(self._parts)

    @property
    def places(self) -> Places:
        """Where the text stands in the file, as far as that was said."""
        return self._marks.places

    def _write(self, text: str) -> None:
        between = self._between if self._parts else ""
        if self._place:
            self._marks.add(self._size + len(between), *self._place)
        self._size += len(between) + len(text)
        if self._size > self._most:
            raise too_long(self._most)
        self._parts += (between, text)
        self._between = ""
