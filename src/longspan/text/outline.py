"""The title and the headings of a file: those that its format declares, else those that its text shows."""

from longspan.text.files.kinds import CODE, DATA
from longspan.text.files.parsed import MOST_HEADINGS, Heading, Parsed, as_heading
from longspan.text.headings import headings
from longspan.text.markup import OF_SUFFIX, markdown, plain
from longspan.text.signatures import signatures
from longspan.text.titles import title_of

NEAR_THE_TOP = 1000
"""Characters among which the first heading of marked up text is its title."""

LONGEST_ROW = 2000


def outline(parsed: Parsed, kind: str, suffix: str) -> tuple[str | None, tuple[Heading, ...]]:
    """The title of a document, or None, and its headings.

    >>> outline(Parsed("# Fees\\n\\n## Late fees\\n"), "markdown", ".md")[1]
    (Heading(start=0, level=1, text='Fees'), Heading(start=8, level=2, text='Late fees'))
    """
    text = parsed.text
    if parsed.headings:
        return parsed.title or _first(parsed.headings), parsed.headings
    if kind == "text" and suffix in DATA:
        return parsed.title, columns(text) if suffix in (".csv", ".tsv") else ()
    if kind == "text" and suffix in CODE:
        return parsed.title, signatures(text, suffix)
    marks = markdown if kind == "markdown" else OF_SUFFIX.get(suffix, plain) if kind == "text" else None
    marked = tuple(marks(text)[:MOST_HEADINGS]) if marks else ()
    title = parsed.title or (title_of(text) if marks is plain else None)
    if marked or marks not in (None, plain):
        return title or _first(marked), marked
    return title, headings(text)[:MOST_HEADINGS]


def columns(text: str) -> tuple[Heading, ...]:
    """The first row of a table as the heading of all others, if it names columns.

    >>> columns("name,price\\nRose,3\\n")
    (Heading(start=0, level=1, text='name, price'),)
    """
    first = text[:LONGEST_ROW].partition("\n")[0]
    mark = max(",;\t|", key=first.count)
    names = [name.strip(" \"'\r") for name in first.split(mark)]
    named = len(names) > 1 and all(name and any(map(str.isalpha, name)) for name in names)
    return (Heading(0, 1, as_heading(", ".join(names))),) if named and len(first) < LONGEST_ROW else ()


def _first(marked: tuple[Heading, ...]) -> str | None:
    """The first heading as the title, if it stands near the top and has no number."""
    near = marked and marked[0].start < NEAR_THE_TOP and marked[0].level == 1
    return marked[0].text if near and not marked[0].text[0].isdigit() else None
