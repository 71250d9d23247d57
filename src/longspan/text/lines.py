"""The lines of a text. Those around a place are looked at within the reach of a heading, in constant time."""

from longspan.text.files.parsed import LONGEST_HEADING


def stands_alone(text: str, start: int, end: int) -> bool:
    """Whether blank lines, or the ends of the text, are before and after this span."""
    return blank_before(text, start) and blank_after(text, end)


def is_phrase(line: str) -> bool:
    """Whether a line that stands alone is a few words rather than a sentence."""
    return len(line.split()) <= 9 and line[0].isupper() and line.rstrip()[-1:] not in tuple(".,;:!?")


def line_at(text: str, start: int) -> tuple[str, bool]:
    """The line from `start` on, as far as headings reach, and whether this is all of it."""
    reach = start + 2 * LONGEST_HEADING
    end = text.find("\n", start, reach)
    return (text[start:end].removesuffix("\r"), True) if end >= 0 else (text[start:reach], reach >= len(text))


def may_begin(text: str, start: int) -> bool:
    """Whether a heading may begin here: after a blank line, the end of a sentence, or another short line."""
    before = text[max(0, start - 2 * LONGEST_HEADING) : start].rstrip(" \t\f")[:-1]
    last = before.rpartition("\n")[2].rstrip()
    return len(last) < 45 or last[-1] in '.;:!?"”)'


def blank_before(text: str, start: int) -> bool:
    """Whether the line before the one that begins at `start` is blank."""
    before = text[max(0, start - LONGEST_HEADING) : start].rstrip(" \t\f")
    return before[-1:] == "\n" and before[:-1].rstrip(" \t\r\f")[-1:] in ("\n", "")


def blank_after(text: str, end: int) -> bool:
    """Whether the line ends at `end`, and the next one is blank."""
    after = text[end : end + LONGEST_HEADING].lstrip(" \t\r.:")
    return after[:1] in ("\n", "") and after[1:].lstrip(" \t\r\f")[:1] in ("\n", "")


def has_longer_line(text: str, most: int) -> bool:
    """Whether a line has more than `most` characters.

    >>> has_longer_line("abc\\nab", 3), has_longer_line("abc\\nabcd", 3)
    (False, True)
    """
    start = 0
    while start + most < len(text):
        start = text.rfind("\n", start, start + most + 1) + 1
        if not start:
            return True
    return False
