"""`longspan eval search`: how well search finds answers and documents, beside what people use without it."""

import argparse
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from longspan.errors import bad, whole

if TYPE_CHECKING:
    from longspan.evaluate.answers import Outcome
    from longspan.evaluate.figures import Row
    from longspan.evaluate.questions import Questions
    from longspan.reader import Reader

COLLECTIONS = ("questions", "longembed_qmsum", "rfc", "qmsum", "nq")


def add_to(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser("eval", help="measure the quality of a model on collections that you have")
    subjects = verb.add_subparsers(metavar="subject", required=True)
    search = subjects.add_parser(
        "search",
        help="how well answers, passages and documents are found",
        epilog="example: longspan eval search --questions mine.jsonl --documents docs/ --html report.html",
    )
    option = search.add_argument
    option("--questions", type=Path, metavar="FILE", help="JSON lines with file, question and answers")
    option("--documents", nargs="+", metavar="DIR", help="what --questions is about: folders or name=folder")
    option("--longembed-qmsum", type=Path, metavar="DIR", help="QMSum's train/ and val/: summary to meeting")
    option("--rfc", type=Path, metavar="DIR", help="RFCs as .txt: abstract to document")
    option("--qmsum", type=Path, metavar="DIR", help="QMSum's meetings: question to passage")
    option("--nq", type=Path, metavar="FILE", help="NQ with gold passages, stacked to documents")
    option("--model", default="default", help="the long model (default: the built-in model)")
    option(
        "--short", default="short", help="the short model (default: what the built-in model was built from)"
    )
    option("--rerank", metavar="MODEL", help="a cross-encoder, for a row where it ranks our results again")
    option("--limit", type=int, default=8192, metavar="N", help="tokens of an RFC (default: 8192)")
    option("--limit-questions", type=int, metavar="N", help="only the first N questions, for a trial")
    option("--index", type=Path, metavar="DIR", help="keep the index (and others beside it) for the next run")
    option("--methods", metavar="NAMES", help="only these rows: names, separated by commas")
    option("--html", type=Path, metavar="FILE", help="write a page with every question and what was found")
    option("--json", action="store_true", help="print JSON")
    search.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print each row as soon as it is measured; the status is 3 if some questions cannot be used."""
    if not any(getattr(arguments, name) for name in COLLECTIONS):
        names = ", ".join("--" + name.replace("_", "-") for name in COLLECTIONS)
        raise bad("collection", f"at least one of {names}", None)
    if arguments.limit_questions is not None:
        whole("--limit-questions", arguments.limit_questions, 1)
    questions = None
    if arguments.questions:
        from longspan.evaluate.questions import load_questions, warn

        questions = load_questions(arguments.questions, arguments.documents or [], arguments.limit_questions)
        warn(questions)
    if arguments.html and not arguments.html.expanduser().absolute().parent.is_dir():
        raise bad("--html", "a file in a folder that exists", str(arguments.html))
    above, tables = None, dict[str, "list[Row]"]()
    method, shown = "", list["Outcome"]()
    for row, outcomes in _rows(arguments, questions):
        tables.setdefault(row.collection, []).append(row)
        if not shown and any(outcome.ranking.hits for outcome in outcomes):
            method, shown = row.method, outcomes
        if not arguments.json and (above is None or not row.fits(above)):
            print(f"\n{row.header}" if above else row.header)
            above = row
        print(json.dumps(row.as_dict()) if arguments.json else row, flush=True)
    if not tables:
        raise bad("--methods", "names of rows that these collections have", arguments.methods)
    if arguments.html:
        from longspan.evaluate.report import page

        arguments.html.expanduser().write_text(
            page([*tables.values()], questions, method, shown), encoding="utf-8"
        )
    return 3 if questions and questions.warnings else 0


def _rows(
    arguments: argparse.Namespace, questions: "Questions | None"
) -> "Iterator[tuple[Row, list[Outcome]]]":
    from longspan.evaluate import answers, collections, longembed, peers, retrieval
    from longspan.evaluate.rerank import cross_encoder
    from longspan.reader import load

    @cache
    def long() -> "Reader":
        return load(arguments.model, task="encode", overflow="window")

    @cache
    def short() -> "Reader":
        from longspan.builtin import short_folder

        return load(short_folder() if arguments.short == "short" else arguments.short, task="encode")

    methods = None if arguments.methods is None else [name.strip() for name in arguments.methods.split(",")]
    index = arguments.index and arguments.index.expanduser().absolute()
    modes = [mode for mode in answers.MODES if methods is None or mode in methods]
    if questions:
        if modes:
            reranker = arguments.rerank and cross_encoder(load(arguments.rerank, task="classify"))
            yield from answers.by_index(questions, arguments.model, index, modes, reranker)
        names = [name for name in peers.PEERS if methods is None or name in methods]
        yield from peers.by_peers(questions, short, index, names)
    if arguments.longembed_qmsum and modes:
        task = longembed.longembed_qmsum(arguments.longembed_qmsum).limited(arguments.limit_questions)
        folder = index and index.with_name(f"{index.name}-longembed")
        yield from ((row, []) for row in longembed.by_ndcg(task, arguments.model, folder, modes))
    if arguments.rfc:
        rfcs = collections.rfc(arguments.rfc).limited(arguments.limit_questions)
        rows = retrieval.by_document(rfcs, short(), long(), arguments.limit, methods)
        yield from ((row, []) for row in rows)
    for path, read in ((arguments.qmsum, collections.qmsum), (arguments.nq, collections.nq)):
        if path:
            collection = read(path).limited(arguments.limit_questions)
            yield from ((row, []) for row in retrieval.by_passage(collection, short(), long(), methods))
