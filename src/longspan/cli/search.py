"""`longspan search QUERY [PATH...]`: the passages that answer a question, in the index or in some files."""

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from longspan.cli import terminal
from longspan.cli.index import add_common, check_paths, empty, tell_new
from longspan.cli.inputs import STANDARD_INPUT
from longspan.cli.options import check_model, count, limits_of
from longspan.cli.parsing import Verb
from longspan.cli.terminal import detail, note, say
from longspan.cli.updating import opened, tell_problems
from longspan.errors import bad, missing, whole

if TYPE_CHECKING:
    from longspan.cli.queries import Line
    from longspan.search.index import Index
    from longspan.search.request import Reply, Request
    from longspan.search.update import Report
    from longspan.text.documents import Limits

MINUTES = 10
"""How long a warm process waits for the next query."""
WAIT = 2.0
"""Seconds to wait for another process that changes the index; then what is there is searched."""
STOPPED = (
    "stopped; all but what was just being read is kept, and the next run goes on. By what has been read:"
)


def add_to(verbs: "argparse._SubParsersAction[Verb]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser(
        "search",
        help="find passages of documents by meaning and by words",
        examples=[
            'longspan search "who may end the contract?" contracts/',
            'longspan search "rate of interest" --glob "*.pdf" --top 3',
            'curl -s https://example.com/terms.txt | longspan search "who pays?" -',
            "longspan search --queries questions.txt --json > answers.jsonl",
        ],
    )
    verb.add_argument("query", nargs="?", metavar="QUERY", help="a question, a sentence or some words")
    verb.add_argument(
        "paths", nargs="*", metavar="PATH", help="files and folders, or - (default: all of the index)"
    )
    verb.add_argument("--queries", metavar="FILE", help="many queries: one on each line, or JSON; - is stdin")
    verb.add_argument("--top", type=count, default=5, metavar="N", help="passages to show (default: 5)")
    modes, kinds = ("hybrid", "dense", "bm25"), ("passage", "document")
    verb.add_argument("--mode", default="hybrid", choices=modes, help="how (default: hybrid)")
    verb.add_argument("--by", default="passage", choices=kinds, help="what (default: passage)")
    verb.add_argument(
        "--glob", action="append", default=[], metavar="PATTERN", help="only files such as *.pdf"
    )
    verb.add_argument("--min-score", type=float, metavar="X", help="leave out what scores less")
    verb.add_argument(
        "--rerank", metavar="MODEL", help="a model that gives the best passages their final scores"
    )
    verb.add_argument(
        "--rerank-top", type=count, default=50, metavar="N", help="how many of them (default: 50)"
    )
    verb.add_argument("--context", type=int, metavar="N", help="show N lines before and behind the answer")
    verb.add_argument(
        "--open", type=int, metavar="[RANK]", help="open the file of a result (default: the first)"
    )
    verb.add_argument("--now", action="store_true", help="answer from what the model has read so far")
    verb.add_argument(
        "--keep",
        type=int,
        metavar="[MINUTES]",
        help=f"stay warm in the background (default: {MINUTES}; 0 ends it)",
    )
    verb.add_argument("--stop-keep", action="store_true", help="end all processes that --keep has started")
    add_common(verb)
    verb.numbers = {"--open": 1, "--keep": MINUTES}
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the best passages: 0 if the best is an answer, 1 if not, 3 if some files could not be read."""
    from longspan.search import keep
    from longspan.search.library import exists, model_name, place

    if arguments.keep is not None and not keep.supported():
        raise bad("--keep", "left out on this system", arguments.keep, "It needs Unix domain sockets.")
    if arguments.stop_keep or arguments.keep == 0:
        keep.stop_all()
        if arguments.query is None and arguments.queries is None:
            return 0
    if STANDARD_INPUT in arguments.paths:
        return _search_input(arguments)
    request, lines = _request(arguments)
    problems = 3 if any(line.problem for line in lines) else 0
    model, adapter = model_name(arguments.model), arguments.adapter
    folder = place(arguments.index, arguments.model, adapter)
    check_paths(request.paths)
    if not request.paths and not exists(folder):
        raise empty(folder)
    tell_new(folder, arguments)
    if arguments.keep:
        reply = keep.ask(keep.identity(folder, model, adapter), request, arguments.keep)
        if reply is not None:
            return _finish(reply, lines, arguments, problems)
    from longspan.search.request import check

    check(request)
    if request.asks_model and arguments.model is not None:
        check_model(arguments.model)
    with opened(folder, arguments) as index:
        detail(f"index: {folder}")
        if request.rerank is not None:
            index.load_reranker(request.rerank)
        reply, status = _search(index, request, limits_of(arguments))
    status = _finish(reply, lines, arguments, status or problems)
    if arguments.keep:
        keep.start(folder, model, arguments.keep, adapter)
    return status


def _search_input(arguments: argparse.Namespace) -> int:
    """Search what standard input holds, by an index that lives as long as this."""
    if arguments.paths != [STANDARD_INPUT]:
        raise bad("PATH", "- alone, or files and folders", " ".join(arguments.paths))
    for option in ("index", "keep", "open"):
        if (value := getattr(arguments, option)) is not None:
            raise bad(f"--{option}", "left out when standard input is searched", value)
    if arguments.queries == STANDARD_INPUT:
        raise bad("--queries", "a file when standard input is searched", arguments.queries)
    import shutil
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        document = Path(folder) / STANDARD_INPUT
        with document.open("wb") as out:
            shutil.copyfileobj(sys.stdin.buffer, out)
        arguments.paths, arguments.index = [str(document)], str(Path(folder) / "index")
        arguments.here = folder
        return run(arguments)


def _request(arguments: argparse.Namespace) -> "tuple[Request, list[Line]]":
    """What the options ask for, and the lines of --queries."""
    from longspan.cli.queries import Line, read_queries
    from longspan.search.request import Request
    from longspan.search.update import listed

    paths, lines = arguments.paths, list[Line]()
    if arguments.queries is not None:
        if arguments.open is not None:
            raise bad("--open", "left out with --queries", arguments.open)
        paths = [arguments.query, *paths] if arguments.query is not None else paths
        lines = read_queries(arguments.queries)
        for line in lines:
            if line.problem:
                say(f"{arguments.queries}:{line.number}: {line.problem}")
        queries = [line.query for line in lines if not line.problem]
        if not queries:
            raise bad("--queries", "a file that holds queries", arguments.queries)
    elif arguments.query is None:
        raise missing("QUERY", "a question", 'As in: longspan search "who pays?" contracts/')
    else:
        queries = [arguments.query]
    for pattern in arguments.glob:
        if '"' in pattern or not pattern:
            raise bad("--glob", "a pattern such as *.pdf, without quotes in it", pattern)
    for name, least in (("context", 0), ("open", 1), ("keep", 0)):
        if getattr(arguments, name) is not None:
            whole(f"--{name}", getattr(arguments, name), least)
    names = ("top", "mode", "by", "min_score", "rerank_top", "context", "json", "now")
    return Request(
        queries=queries,
        paths=[str(path) for path in listed(paths)],
        filters=" ".join(f'file:"{pattern}"' for pattern in arguments.glob),
        many=arguments.queries is not None,
        color=terminal.color(),
        links=terminal.links(),
        width=terminal.width(),
        here=getattr(arguments, "here", None) or os.getcwd(),
        rerank=None if arguments.rerank is None else str(check_model(arguments.rerank)),
        **{name: getattr(arguments, name) for name in names},
    ), lines


def _search(index: "Index", request: "Request", limits: "Limits") -> "tuple[Reply, int]":
    """Bring the index up to date, let the model read, and search; the status: 0, 3 or 130."""
    from longspan.search.library import Catalog
    from longspan.search.request import answer

    report, stopped = _add(index, request, limits)
    if not request.paths and not len(index):
        raise empty(index.folder)
    with Catalog(index.folder) as catalog:
        unread = catalog.unread(list(map(Path, request.paths)))
    busy = bool(request.paths) and report is None
    if request.asks_model and unread and not (request.now or stopped or busy):
        stopped = _read(index, request, unread, report)
        if stopped and index.share_read and "reader" not in vars(index):  # stopped while the model was loaded
            request = replace(request, mode="bm25")
    reply = answer(index, request, report)
    failed = report is not None and report.failed
    return reply, 130 if stopped else 3 if failed else 0


def _add(index: "Index", request: "Request", limits: "Limits") -> "tuple[Report | None, bool]":
    """Add the words of new files: what was done, None if nothing could be, and whether the user ended it."""
    from longspan.search.lock import Unwritable

    if not request.paths:
        return None, False
    try:
        report = index.add(request.paths, vectors=False, progress=_progress(), wait=WAIT, limits=limits)
    except Unwritable as reason:
        say(f"{reason} What it holds so far is searched.")
        return None, False
    except KeyboardInterrupt:
        say(STOPPED)
        return None, True
    tell_problems(index, report)
    if not request.json and (report.added or report.changed or report.moved or report.removed):
        note(str(report))
    return report, False


def _progress() -> bool | None:
    """Bars show themselves if the work takes a while, unless --quiet is given."""
    return False if terminal.is_quiet() else None


def _read(index: "Index", request: "Request", unread: int, report: "Report | None") -> bool:
    """Show what words find on a terminal while the model reads; whether the user stopped it."""
    from longspan.search.lock import Unwritable
    from longspan.search.request import answer

    if terminal.is_terminal() and not request.json and not request.many and request.mode != "dense":
        # Without the model, which takes seconds to load.
        mode = "bm25" if index.share_read else request.mode
        print(answer(index, replace(request, mode=mode, rerank=None)).out, end="\n\n", flush=True)
        note(f"by words so far; the model is reading {terminal.size(unread)} (--now leaves it out).")
    try:
        reading = index.embed(inside=request.paths or None, progress=_progress(), wait=WAIT)
    except Unwritable as reason:
        say(f"{reason} What it holds so far is searched.")
    except KeyboardInterrupt:
        say(STOPPED)
        return True
    else:
        if not request.json:
            speed = reading.n_tokens / max(reading.seconds, 1e-9)
            note(f"the model has read {reading.n_tokens:,} tokens, {speed:,.0f} in a second.")
        if report is not None:
            for name in ("read", "n_tokens", "truncated", "seconds"):
                setattr(report, name, getattr(report, name) + getattr(reading, name))
    return False


def _finish(reply: "Reply", lines: "list[Line]", arguments: argparse.Namespace, status: int) -> int:
    """Print the results, open one if asked to, and give the status."""
    out, rank = reply.out, arguments.open
    if arguments.json and lines:
        answers = iter(out.splitlines())
        out = "\n".join(line.as_json() if line.problem else next(answers) for line in lines)
    print(out, flush=True)
    if reply.read < 1:
        note(f"read {int(100 * reply.read)}% by meaning; the rest by words.")
    if rank is not None and rank <= len(reply.found):
        terminal.open_file(*reply.found[rank - 1])
    elif rank is not None:
        say(f"there is no result {rank} to open.")
    return status if status == 130 else status if reply.answered else 1
