"""What a search finds: passages that say where they stand and print well."""

import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypedDict, cast, overload

from longspan.errors import InputError
from longspan.search.highlight import Excerpt, Highlighter
from longspan.search.highlight import printable as printable
from longspan.search.rerank import Rerank

SAME = 3
"""How many identical files are named."""


class HitDict(TypedDict):
    """A Hit as JSON has it."""

    file: str
    same: list[str]
    title: str
    section: list[str]
    page: int | None
    line: int | None
    start: int
    end: int
    answer_start: int
    answer_end: int
    answer_page: int | None
    answer_line: int | None
    where: str
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
    "The headings that the answer stands under, the outermost first."
    page: int | None
    "From 1, where the format has pages."
    line: int | None
    "From 1, where a person can go to lines of the file: plain texts, source code and HTML."
    start: int
    end: int
    "text = document[start:end], in characters."
    answer_start: int
    answer_end: int
    "The sentence that answers best, in characters of the document."
    answer_page: int | None
    answer_line: int | None
    where: str = ""
    "Where a person finds the answer: line 12, page 3, slide 4, sheet Prices, row 7, paragraph 8."
    score: float
    "How likely it answers, from 0 to 1 (hybrid, dense); BM25 (bm25); or what a re-ranker gives it."
    dense: float | None
    bm25: float | None
    text: str

    @property
    def answer(self) -> str:
        """The sentence that answers best."""
        return self.text[self.answer_start - self.start : self.answer_end - self.start]

    @property
    def place(self) -> str:
        """Where the answer stands: the file, relative to the current folder if inside, and where in it."""
        return self.cited(Path.cwd())

    def cited(self, here: Path) -> str:
        """The same, relative to another folder; file:line, as editors read it, where there are lines."""
        where = f":{self.answer_line}" if self.answer_line else f", {self.where}" if self.where else ""
        return f"{_relative(self.file, here)}{printable(where)}"

    @property
    def url(self) -> str:
        """The file as a link, to the page of the answer where the format has pages."""
        page = f"page {self.answer_page}"
        return self.file.absolute().as_uri() + (f"#page={self.answer_page}" if self.where == page else "")

    @property
    def headings(self) -> str:
        """The title of the document and the headings above the answer, on one line."""
        parts = dict.fromkeys(" ".join(part.split()) for part in (self.title, *self.section))
        return printable(" › ".join(part for part in parts if part))

    @property
    def reason(self) -> str:
        """What speaks for it: its meaning (a cosine) and its words (BM25)."""
        scores = {"meaning": (self.dense, 2), "words": (self.bm25, 1)}
        return ", ".join(f"{name} {v:.{digits}f}" for name, (v, digits) in scores.items() if v is not None)

    def as_dict(self) -> HitDict:
        """Plain data for JSON."""
        return cast(
            HitDict,
            asdict(self)
            | {"file": str(self.file), "same": list(map(str, self.same)), "section": list(self.section)},
        )


ContextOf = Callable[[Hit], tuple[int, str]]
"""The text around a hit, and where it starts in the document."""


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
        likely: bool = True,
        reranked: bool = False,
    ) -> None:
        self.query, self._hits = query, tuple(hits)
        self.asked = query if asked is None else asked
        "The words of the query, without marks and filters."
        self.answered = answered and bool(hits)
        "Whether the best hit is good enough to be called an answer."
        self.read = read
        "How much of the text the model had read, from 0 to 1; the rest was searched by words."
        self.likely = likely
        "Whether scores say how likely a hit answers, from 0 to 1; BM25 and those of `rerank` do not."
        self.is_reranked = reranked
        "Whether scores are those of a re-ranker."

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> "Hits": ...
    def __getitem__(self, index: int | slice) -> "Hit | Hits":
        if isinstance(index, slice):
            return self._of(self._hits[index], self.likely, self.is_reranked)
        return self._hits[index]

    def _of(self, hits: Sequence[Hit], likely: bool, reranked: bool) -> "Hits":
        """Other hits of the same query."""
        return Hits(
            self.query,
            hits,
            answered=self.answered,
            read=self.read,
            asked=self.asked,
            likely=likely,
            reranked=reranked,
        )

    def __len__(self) -> int:
        return len(self._hits)

    def reranked(self, rerank: Rerank) -> "Hits":
        """The same hits with the scores that `rerank` gives them, in the order of these."""
        scores = list(map(float, rerank([(self.asked, hit.text) for hit in self._hits])))
        if len(scores) != len(self._hits):
            requirement = f"a function that gives {len(self._hits)} pairs as many scores"
            raise InputError(f"`rerank` must be {requirement}, but gives {len(scores)}.")
        order = sorted(range(len(scores)), key=lambda place: -scores[place])
        hits = [replace(self._hits[place], score=scores[place]) for place in order]
        return self._of(hits, likely=False, reranked=True)

    def _reason(self, hit: Hit) -> str:
        """How likely a hit answers, or its score by a re-ranker, and what speaks for it, in brackets."""
        share = "<1 %" if hit.score < 0.005 else f"{100 * hit.score:.0f} %"
        parts = [share] * self.likely + [f"re-ranked {hit.score:.3f}"] * self.is_reranked
        parts += [hit.reason] * bool(hit.reason)
        return f"({', '.join(parts)})" if parts else ""

    def __repr__(self) -> str:
        return "\n\n".join([*self.notes(), *self.lines()])

    def notes(self, query: str | None = None) -> list[str]:
        """What is said before the hits: that they are no answers to the query, or that there are none."""
        quoted = repr(printable(self.query if query is None else query))
        if not self._hits:
            return [f"nothing found for {quoted}"]
        return [] if self.answered else [f"no good match for {quoted}; the best tries:"]

    def lines(
        self,
        *,
        color: bool = False,
        links: bool = False,
        width: int | None = None,
        here: Path | None = None,
        context: ContextOf | None = None,
    ) -> Iterator[str]:
        """Each hit as some lines: where it stands, how sure it is, its headings, and the passage.

        The answering sentence is bold and the words of the query underlined if `color`; else the answer is
        between » and «. `links` makes the place a hyperlink, `here` is what paths are relative to, and
        `context` gives the text around a hit, and where it starts in the document, in place of the passage.
        """
        bold, dim, off = ("\033[1m", "\033[2m", "\033[0m") if color else ("", "", "")
        excerpts = [_excerpts(hit, context) for hit in self._hits]
        highlighter = Highlighter(self.asked, (part.text for parts in excerpts for part in parts))
        for rank, (hit, parts) in enumerate(zip(self._hits, excerpts, strict=True), 1):
            place = f"{bold}{hit.cited(here or Path.cwd())}{off}"
            place = f"\033]8;;{hit.url}\033\\{place}\033]8;;\033\\" if links else place
            lines = [f"{rank}. {place}  {dim}{self._reason(hit)}{off}"]
            headings = f"   {hit.headings}"
            lines += [f"{dim}{headings if width is None else headings[:width]}{off}"] if hit.headings else []
            for part in parts:
                shown = part if color else part.with_quotes()
                spans = highlighter.spans(shown.text) if color else []
                for line in shown.lines(None if width is None else max(20, width - 3)):
                    lines.append("   " + "".join(_styled(*piece) for piece in shown.pieces(spans, line)))
            if hit.same:
                others = [_relative(file, here or Path.cwd()) for file in hit.same[:SAME]]
                others += [f"{len(hit.same) - SAME} more"] if len(hit.same) > SAME else []
                lines.append(f"   {dim}also in: {', '.join(others)}{off}")
            yield "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        excerpts = [_excerpts(hit, None)[0] for hit in self._hits]
        highlighter = Highlighter(self.asked, (part.text for part in excerpts))
        rows = [f"<p>{html.escape(note)}</p>" for note in self.notes()]
        for rank, (hit, part) in enumerate(zip(self._hits, excerpts, strict=True), 1):
            head = f"{rank}. <b>{html.escape(hit.place)}</b> <small>{html.escape(self._reason(hit))}</small>"
            head += f"<br><small>{html.escape(hit.headings)}</small>" if hit.headings else ""
            pieces = []
            for text, hot, answering in part.pieces(highlighter.spans(part.text), (0, len(part.text))):
                piece = f"<b>{html.escape(text)}</b>" if hot else html.escape(text)
                pieces.append(f"<mark>{piece}</mark>" if answering else piece)
            rows.append(f"<p>{head}<br>{''.join(pieces).replace('</mark><mark>', '')}</p>")
        return "".join(rows)


def _excerpts(hit: Hit, context: ContextOf | None) -> list[Excerpt]:
    """What is shown of a hit: its passage as one piece, or the lines of its context.

    The answer is marked unless it is all that is shown.
    """
    if context is None:
        span = hit.answer_start - hit.start, hit.answer_end - hit.start
        return _unless_all([Excerpt.of(hit.text, *span).cut()])
    start, text = context(hit)
    parts = []
    for line in text.splitlines(keepends=True):
        begin, end = (min(max(place - start, 0), len(line)) for place in (hit.answer_start, hit.answer_end))
        parts.append(Excerpt.of(line, begin, end))
        start += len(line)
    return _unless_all(parts)


def _unless_all(parts: list[Excerpt]) -> list[Excerpt]:
    return [Excerpt(part.text, 0, 0) for part in parts] if all(part.is_answer for part in parts) else parts


def _styled(text: str, hot: bool, answering: bool) -> str:
    """A piece of a passage on a terminal."""
    codes = ";".join(["1"] * answering + ["4"] * hot)
    return f"\033[{codes}m{text}\033[0m" if codes else text


def _relative(file: Path, here: Path) -> str:
    """A path, relative to a folder if inside."""
    return printable(str(file.relative_to(here) if file.is_relative_to(here) else file))
