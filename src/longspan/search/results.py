"""What a search finds: passages that say where they stand and print well."""

import html
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypedDict, cast, overload

from longspan.search.highlight import Highlighter


class HitDict(TypedDict):
    """A Hit as JSON has it."""

    file: str
    same: list[str]
    title: str
    section: list[str]
    page: int | None
    line: int
    start: int
    end: int
    answer_start: int
    answer_end: int
    answer_page: int | None
    answer_line: int
    score: float
    dense: float | None
    bm25: float | None
    text: str


@dataclass(frozen=True, kw_only=True)
class Hit:
    """A passage that answers a query."""

    file: Path
    same: tuple[Path, ...] = ()
    "Other files with the same content."
    title: str = ""
    section: tuple[str, ...] = ()
    "The headings that it stands under, the outermost first."
    page: int | None
    "From 1, where the format has pages."
    line: int
    "From 1, in the text that was read."
    start: int
    end: int
    "text = document[start:end], in characters."
    answer_start: int
    answer_end: int
    "The sentence that answers best, in characters of the document."
    answer_page: int | None
    answer_line: int
    score: float
    "How likely it answers, from 0 to 1 (hybrid, dense); BM25 (bm25)."
    dense: float | None
    bm25: float | None
    text: str

    @property
    def answer(self) -> str:
        """The sentence that answers best."""
        return self.text[self.answer_start - self.start : self.answer_end - self.start]

    @property
    def place(self) -> str:
        """The file, relative to the current folder if inside, and the page or line, as editors read it."""
        here = Path.cwd()
        file = self.file.relative_to(here) if self.file.is_relative_to(here) else self.file
        where = f":{self.line}" if self.page is None else f", page {self.page}"
        return printable(f"{file}{where}")

    @property
    def reason(self) -> str:
        """What speaks for it: how close its meaning is (a cosine), how well its words fit (BM25)."""
        scores = {"meaning": (self.dense, 2), "words": (self.bm25, 1)}
        return ", ".join(f"{name} {v:.{digits}f}" for name, (v, digits) in scores.items() if v is not None)

    def as_dict(self) -> HitDict:
        """Plain data for JSON."""
        return cast(
            HitDict,
            asdict(self)
            | {"file": str(self.file), "same": list(map(str, self.same)), "section": list(self.section)},
        )


class Hits(Sequence[Hit]):
    """The best passages, best first; printed, they show the words of the query."""

    def __init__(
        self,
        query: str,
        hits: Sequence[Hit],
        *,
        answered: bool = True,
        read: float = 1.0,
        asked: str | None = None,
    ) -> None:
        self.query, self._hits = query, tuple(hits)
        self.asked = query if asked is None else asked
        "The words of the query, without marks and filters."
        self.answered = answered and bool(hits)
        "Whether the best hit is good enough to be called an answer."
        self.read = read
        "How much of the text the model had read, from 0 to 1; the rest was searched by words."

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> "Hits": ...
    def __getitem__(self, index: int | slice) -> "Hit | Hits":
        if isinstance(index, slice):
            kept = self._hits[index]
            return Hits(self.query, kept, answered=self.answered, read=self.read, asked=self.asked)
        return self._hits[index]

    def __len__(self) -> int:
        return len(self._hits)

    def __repr__(self) -> str:
        return "\n\n".join(self.lines()) or f"nothing found for {self.query!r}"

    def lines(self, *, color: bool = False, width: int | None = None) -> Iterator[str]:
        """Each hit as two or more lines, the words of the query in bold if `color`."""
        on, off, dim = ("\033[1m", "\033[0m", "\033[2m") if color else ("", "", "")
        highlighter, texts = self._highlighter()
        for rank, (hit, text) in enumerate(zip(self._hits, texts, strict=True), 1):
            yield f"{rank}. {on}{hit.place}{off}  {dim}({hit.reason}){off}\n" + "\n".join(
                "   " + "".join(f"{on}{part}{off}" if hot else part for part, hot in highlighter.parts(line))
                for line in _wrapped(highlighter.snippet(text), width)
            )

    def _repr_html_(self) -> str:
        highlighter, texts = self._highlighter()
        rows = []
        for rank, (hit, text) in enumerate(zip(self._hits, texts, strict=True), 1):
            parts = [
                f"<mark>{html.escape(part)}</mark>" if hot else html.escape(part)
                for part, hot in highlighter.parts(highlighter.snippet(text))
            ]
            place = f"{rank}. <b>{html.escape(hit.place)}</b> <small>{hit.reason}</small>"
            rows.append(f"<p>{place}<br>{''.join(parts)}</p>")
        return "".join(rows) or f"<p>nothing found for {html.escape(self.query)}</p>"

    def _highlighter(self) -> tuple[Highlighter, list[str]]:
        """What marks the query in the passages, and the passages, each on one line."""
        texts = [printable(" ".join(hit.text.split())) for hit in self._hits]
        return Highlighter(self.asked, texts), texts


def _wrapped(text: str, width: int | None) -> list[str]:
    """Lines that fit below a rank; one line if there is no width."""
    return [text] if width is None else textwrap.wrap(text, max(20, width - 3)) or [""]


def printable(text: str) -> str:
    """Text without what a terminal would obey, or what cannot be written as UTF-8.

    >>> printable("a\\x1b[2Jb")
    'a�[2Jb'
    """
    clean = "".join(c if c.isprintable() else "�" for c in text)
    return clean.encode("utf-8", "replace").decode()
