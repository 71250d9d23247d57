"""What a search finds: passages that say where they stand and print well."""

import html
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from longspan.errors import CheckpointError

_STOP = """a an and are as at be by can did do does for from had has have how i in is it its of on or that
the their there these they this to was were what when where which who whom whose why will with you your"""
STOP = frozenset(_STOP.split())
SNIPPET = 440
_WORD = re.compile(r"\w+")
_ENDING = re.compile(r"(?:ing|edly|ed|ies|es|s|ly|y)$")


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A passage that answers a query."""

    file: Path
    page: int | None
    "From 1, where the format has pages."
    line: int
    "From 1, in the text that was read."
    start: int
    end: int
    "text = document[start:end], in characters."
    score: float
    "The cosine (dense), BM25, or the sum of 1 / (60 + rank) over both (hybrid)."
    dense: float | None
    bm25: float | None
    text: str

    @property
    def place(self) -> str:
        """The file and the page or line, as editors understand it; relative where it lies below us."""
        here = Path.cwd()
        file = self.file.relative_to(here) if self.file.is_relative_to(here) else self.file
        where = f":{self.line}" if self.page is None else f", page {self.page}"
        return printable(f"{file}{where}")

    @property
    def reason(self) -> str:
        """What speaks for it: how near its meaning is (a cosine), how well its words fit (BM25)."""
        found = {"meaning": (self.dense, 2), "words": (self.bm25, 1)}
        return ", ".join(f"{name} {v:.{digits}f}" for name, (v, digits) in found.items() if v is not None)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self) | {"file": str(self.file)}


class Hits(Sequence[Hit]):
    """The best passages, best first."""

    def __init__(self, query: str, found: Sequence[Hit]) -> None:
        self.query, self._found = query, tuple(found)

    def __getitem__(self, index: Any) -> Any:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return "\n\n".join(self.lines()) or f"nothing found for {self.query!r}"

    def lines(self, *, colour: bool = False, width: int | None = None) -> Iterator[str]:
        """Each hit as two or more lines, words of the query in bold if there is `colour`."""
        on, off, dim = ("\033[1m", "\033[0m", "\033[2m") if colour else ("", "", "")
        for rank, hit in enumerate(self._found, 1):
            yield f"{rank}. {on}{hit.place}{off}  {dim}({hit.reason}){off}\n" + "\n".join(
                "   " + "".join(f"{on}{text}{off}" if hot else text for text, hot in marked(line, self.query))
                for line in _wrapped(snippet(hit.text, self.query), width)
            )

    def _repr_html_(self) -> str:
        rows = []
        for rank, hit in enumerate(self._found, 1):
            parts = [
                f"<mark>{html.escape(text)}</mark>" if hot else html.escape(text)
                for text, hot in marked(snippet(hit.text, self.query), self.query)
            ]
            place = f"{rank}. <b>{html.escape(hit.place)}</b> <small>{hit.reason}</small>"
            rows.append(f"<p>{place}<br>{''.join(parts)}</p>")
        return "".join(rows) or f"<p>nothing found for {html.escape(self.query)}</p>"


def terms(query: str) -> set[str]:
    """The stems of the words that matter; all of them if none does.

    >>> sorted(terms("Where does the river flow?"))
    ['flow', 'river']
    """
    words = {word.casefold() for word in _WORD.findall(query)}
    return {_stem(word) for word in (words - STOP or words)}


def marked(text: str, query: str) -> list[tuple[str, bool]]:
    """The text in parts, each with whether it is a word of the query.

    >>> marked("It flows here.", "flow")
    [('It ', False), ('flows', True), (' here.', False)]
    """
    wanted, parts, here = terms(query), [], 0
    for word in _WORD.finditer(text):
        if _stem(word[0].casefold()) in wanted:
            parts += [(text[here : word.start()], False), (word[0], True)]
            here = word.end()
    return [part for part in [*parts, (text[here:], False)] if part[0]]


def snippet(text: str, query: str, size: int = SNIPPET) -> str:
    """At most about `size` characters on one line, from where most different words of the query stand."""
    text = printable(" ".join(text.split()))
    if len(text) <= size:
        return text
    wanted = terms(query)
    places = [(m.start(), _stem(m[0].casefold())) for m in _WORD.finditer(text)]
    places = [place for place in places if place[1] in wanted]
    first = max(
        (start for start, _ in places),
        key=lambda start: len({stem for other, stem in places if start <= other < start + size * 3 // 4}),
        default=0,
    )
    first = max(0, min(first - size // 8, len(text) - size))
    begin = first and text.find(" ", first) + 1
    end = text.rfind(" ", 0, begin + size) if begin + size < len(text) else len(text)
    end = end if end > begin else begin + size
    return f"{'… ' if begin else ''}{text[begin:end]}{' …' if end < len(text) else ''}"


def _wrapped(text: str, width: int | None) -> list[str]:
    """Lines that fit below a number; one if no width is given."""
    return [text] if width is None else textwrap.wrap(text, max(20, width - 3)) or [""]


def printable(text: str) -> str:
    """Text without what a terminal would obey, or what cannot be written as UTF-8.

    >>> printable("a\\x1b[2Jb")
    'a�[2Jb'
    """
    clean = "".join(c if c.isprintable() else "�" for c in text)
    return clean.encode("utf-8", "replace").decode()


def _stem(word: str) -> str:
    return _ENDING.sub("", word) if len(word) > 4 else word


def damaged(folder: Path, reason: str) -> CheckpointError:
    """The error for an index that cannot be trusted any more."""
    repair = f"Rebuild it: longspan index PATH... --index {folder} --rebuild"
    return CheckpointError(f"The index `{folder}` is damaged: {reason}. {repair}")
