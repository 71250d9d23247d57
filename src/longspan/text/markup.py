"""The headings of light markup: Markdown, reStructuredText, AsciiDoc, wiki text, Org and TeX."""

import re
from collections.abc import Callable, Iterator
from itertools import islice

from longspan.text.files.parsed import LONGEST_HEADING, MOST_HEADINGS, Heading, as_heading

# Line breaks come first, for which the engine scans fast; so the text must begin with one, too.
_FENCE = re.compile(r"\n {0,3}(`{3,}|~{3,})")
_HASHES = re.compile(r"\n {0,3}(#{1,6})[ \t]{1,9}(\S[^\n]{0,400})")
_RULE = re.compile(r"\n([=\-~^\"'`*+#_:.<>])\1{2,200}[ \t\r]{0,80}(?=\n|\Z)")
_EQUALS = re.compile(
    r"\n {0,3}(=(?: ?=){0,5}) {1,3}([^=\s][^\n=]{0,150}) {1,3}=(?: ?=){0,5}[ \t\r]*(?=\n|\Z)"
)
_ASCIIDOC = re.compile(r"\n(={1,6}) (\S[^\n]{0,200})")
_ORG = re.compile(r"\n(\*{1,9}) (\S[^\n]{0,200})")
_TEX = re.compile(r"\\(part|chapter|(?:sub){0,2}section|paragraph)\*?\{([^{}\n]{1,200})\}")
_TEX_LEVELS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph")


def markdown(text: str) -> list[Heading]:
    """Headings after `#` and above `===` or `---`, outside of fenced code.

    >>> markdown("# One\\n\\n```\\n# no heading\\n```\\n\\nTwo\\n---\\n")
    [Heading(start=0, level=1, text='One'), Heading(start=29, level=2, text='Two')]
    """
    shifted = "\n" + text
    fences = list(_fenced(shifted))
    hashes = [
        Heading(match.start(1) - 1, len(match[1]), as_heading(match[2].rstrip(" \t\r").rstrip("#")))
        for match in islice(_HASHES.finditer(shifted), MOST_HEADINGS)
    ]
    rules = [
        Heading(start, 1 if mark == "=" else 2, title)
        for start, mark, title in _above_rules(text, exactly=False)
        if mark in "=-" and not title.startswith(("#", ">", "|", "- ", "* "))
    ]
    return _outside(sorted(hashes + rules), fences)


def underlined(text: str) -> list[Heading]:
    """Titles with a line of punctuation under them, and perhaps over them, as long as the title.

    Levels come in the order in which the styles appear, as in reStructuredText.

    >>> underlined("Book\\n====\\n\\nPart\\n----\\n\\nPart\\n----\\n")[1]
    Heading(start=11, level=2, text='Part')
    """
    styles: dict[str, int] = {}
    headings = []
    for start, style, title in _above_rules(text, exactly=True):
        headings.append(Heading(start, styles.setdefault(style, len(styles) + 1), title))
    return headings


def equals_signs(text: str) -> list[Heading]:
    """Headings of wikis: `== Title ==`, also with spaces between the signs.

    >>> equals_signs("A\\n\\n = = Rome = = \\n\\n= = = Baths = = =\\n")
    [Heading(start=4, level=1, text='Rome'), Heading(start=19, level=2, text='Baths')]
    """
    if "=" not in text:
        return []
    signs = [(match, match[1].count("=")) for match in islice(_EQUALS.finditer("\n" + text), MOST_HEADINGS)]
    least = min((count for _, count in signs), default=1)
    return [Heading(match.start(1) - 1, count - least + 1, as_heading(match[2])) for match, count in signs]


def plain(text: str) -> list[Heading]:
    """Headings that plain text marks as reStructuredText or a wiki would, if there are two at least."""
    return next((marked for marked in (underlined(text), equals_signs(text)) if len(marked) > 1), [])


def asciidoc(text: str) -> list[Heading]:
    """Headings after equals signs: `== Title`."""
    return _signed(text, _ASCIIDOC)


def org(text: str) -> list[Heading]:
    """Headings after stars: `** Title`."""
    return _signed(text, _ORG)


def tex(text: str) -> list[Heading]:
    """The arguments of sectioning commands.

    >>> tex("\\\\section{Fees}\\n\\\\subsection*{Late fees}")
    [Heading(start=0, level=3, text='Fees'), Heading(start=15, level=4, text='Late fees')]
    """
    commands = islice(_TEX.finditer(text), MOST_HEADINGS)
    return [Heading(m.start(), _TEX_LEVELS.index(m[1]) + 1, as_heading(m[2])) for m in commands]


OF_SUFFIX: dict[str, Callable[[str], list[Heading]]] = {
    ".rst": underlined,
    ".adoc": asciidoc,
    ".org": org,
    ".tex": tex,
}


def _signed(text: str, pattern: re.Pattern[str]) -> list[Heading]:
    return [
        Heading(m.start(), len(m[1]), as_heading(m[2]))
        for m in islice(pattern.finditer("\n" + text), MOST_HEADINGS)
    ]


def _above_rules(text: str, *, exactly: bool) -> Iterator[tuple[int, str, str]]:
    """Where a title with a rule under it begins, the rule's character (twice if one is above), and the title.

    `exactly`: the rule is at least as long as the title and not much longer, and a blank line or another rule
    stands above.
    """
    for match in islice(_RULE.finditer(text), MOST_HEADINGS):
        before = max(0, match.start() - 2 * LONGEST_HEADING)
        start = text.rfind("\n", before, match.start()) + 1 or before
        line = text[start : match.start()]
        title, length = line.strip(), match.end() - match.start() - 1
        if not title or len(title) > LONGEST_HEADING or not any(map(str.isalnum, title)):
            continue
        above = text[max(0, start - 240) : max(0, start - 1)].rpartition("\n")[2].strip()
        ruled = above == match[0].strip()
        if above and not (ruled and exactly):
            continue
        if exactly and not (len(title) <= length + 1 and (ruled or length <= len(title) + 12)):
            continue
        if line[0].isspace() and not ruled:
            continue
        yield start + len(line) - len(line.lstrip()), match[1] * (1 + ruled), as_heading(title)


def _fenced(text: str) -> Iterator[tuple[int, int]]:
    """The spans of fenced code; a fence that is never closed lasts to the end."""
    opened, fence = -1, ""
    for match in islice(_FENCE.finditer(text), MOST_HEADINGS):
        if opened < 0:
            opened, fence = match.start(), match[1]
        elif match[1].startswith(fence):
            yield opened, match.end() - 1
            opened = -1
    if opened >= 0:
        yield opened, len(text)


def _outside(headings: list[Heading], spans: list[tuple[int, int]]) -> list[Heading]:
    """The headings that stand in none of the spans; both are sorted."""
    kept, number = [], 0
    for heading in headings:
        while number < len(spans) and spans[number][1] <= heading.start:
            number += 1
        if heading.text and not (number < len(spans) and spans[number][0] <= heading.start):
            kept.append(heading)
    return kept
