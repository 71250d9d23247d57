"""What a search asks and what is printed of its answer, as plain data that can cross a socket."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longspan.search.library import Catalog
from longspan.search.rerank import MOST

if TYPE_CHECKING:
    from longspan.search.index import Index
    from longspan.search.results import ContextOf, Hit, Hits
    from longspan.search.update import Report

LINE = 200
"""Characters that a line of context counts for, so that text without line breaks stays short."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """Some questions, and how the answers are shown."""

    queries: list[str]
    top: int = 5
    mode: str = "hybrid"
    by: str = "passage"
    paths: list[str] = field(default_factory=list)
    "Absolute; only files in these are searched, all if there are none."
    filters: str = ""
    "Filters such as file:*.pdf that are put before every query."
    min_score: float | None = None
    rerank: str | None = None
    "The absolute folder of a model that gives the best passages their final scores."
    rerank_top: int = MOST
    "How many of them."
    context: int | None = None
    "Lines around the answer."
    now: bool = False
    "Answer from what the model has read so far, and by words from the rest."
    many: bool = False
    "Print each query above its results, or one JSON object on each line."
    json: bool = False
    color: bool = False
    links: bool = False
    width: int | None = None
    here: str = ""
    "The folder that paths are shown relative to."

    @property
    def asks_model(self) -> bool:
        """Whether the model is needed."""
        return self.mode != "bm25"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What is printed."""

    out: str
    answered: bool
    "Whether any of the queries has a good answer."
    found: list[tuple[str, str]]
    "The hits of the last query: file and URL."
    read: float = 1.0
    "How much of the text the model had read, from 0 to 1."


def check(request: Request) -> None:
    """Raise an InputError for what cannot be searched, before reading files, which may take hours."""
    from longspan.search.query import Query
    from longspan.search.view import check_options

    for query in request.queries:
        check_options(query, request.top, request.mode, request.by)
        Query.parse(_asked(request, query))


def answer(index: "Index", request: Request, report: "Report | None" = None) -> Reply:
    """Search the index as it is; `report` says how it was updated before."""
    outputs: list[str] = []
    found: list[tuple[str, str]] = []
    answered = False
    with Catalog(index.folder) as catalog:
        read = catalog.share_read(list(map(Path, request.paths))) if request.asks_model else 1.0
    for query in request.queries:
        hits = index.search(
            _asked(request, query),
            request.top,
            mode=request.mode,
            by=request.by,
            inside=request.paths or None,
            min_score=request.min_score,
            rerank=request.rerank,
            rerank_top=request.rerank_top,
        )
        answered |= hits.answered
        found = [(str(hit.file), hit.url) for hit in hits]
        if request.json:
            update = {} if report is None else {"update": report.as_dict()}
            outputs.append(json.dumps(_as_data(index, request, query, hits) | {"read": read} | update))
            report = None
        else:
            outputs.append(_as_text(index, request, query, hits))
    out = ("\n" if request.json else "\n\n").join(outputs)
    return Reply(out=out, answered=answered, found=found, read=read)


def _asked(request: Request, query: str) -> str:
    return f"{request.filters} {query}".strip()


def _as_data(index: "Index", request: Request, query: str, hits: "Hits") -> dict[str, Any]:
    context = _context_of(index, request)
    results: list[dict[str, Any]] = []
    for rank, hit in enumerate(hits, 1):
        results.append({"rank": rank, **hit.as_dict()})
        if context is not None:
            start, text = context(hit)
            results[-1] |= {"context": text, "context_start": start}
    settings = {"query": query, "mode": request.mode, "by": request.by}
    settings |= {"rerank": request.rerank} if request.rerank else {}
    where = {"index": str(index.folder), "model": index.model}
    return {**settings, **where, "answered": hits.answered, "results": results}


def _as_text(index: "Index", request: Request, query: str, hits: "Hits") -> str:
    from longspan.search.results import printable

    lines = hits.lines(
        color=request.color,
        links=request.links,
        width=request.width,
        here=Path(request.here),
        context=_context_of(index, request),
    )
    heading = [f"==> {printable(query)} <=="] if request.many else []
    return "\n\n".join([*heading, *hits.notes(query), *lines])


def _context_of(index: "Index", request: Request) -> "ContextOf | None":
    """The lines around the answer of a hit, if they are to be shown."""
    count = request.context
    if count is None:
        return None

    def context(hit: "Hit") -> tuple[int, str]:
        with Catalog(index.folder) as catalog:
            text = catalog.text(hit.file)
        if text[hit.start : hit.end] != hit.text:  # another process has changed the index since
            return hit.start, hit.text
        begin, end = surroundings(text, hit.answer_start, hit.answer_end, count)
        return begin, text[begin:end]

    return context


def surroundings(text: str, begin: int, end: int, lines: int) -> tuple[int, int]:
    """Where the lines that hold a span begin and end, and `lines` more on either side.

    >>> surroundings("one\\ntwo\\nthree\\nfour", 8, 13, 1)
    (4, 18)
    """
    first, last = begin, end - 1
    for _ in range(lines + 1):
        if first < 0 and last < 0:
            break
        first = text.rfind("\n", 0, max(first, 0))
        last = text.find("\n", last + 1) if 0 <= last < len(text) else -1
    first, last = first + 1, last if last >= 0 else len(text)
    near, far = begin - (lines + 1) * LINE, end + (lines + 1) * LINE
    first = first if first >= near else text.find(" ", near, begin) + 1 or near
    last = last if last <= far else max(text.rfind(" ", end, far), end)
    return first, last
