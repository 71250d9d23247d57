"""`longspan eval search`: how well search finds answers and documents, beside what people use without it.

Language models have a file of their own.
"""

import argparse
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from longspan.cli import eval_char_lm
from longspan.cli.options import (
    add_limits,
    add_model,
    check_file,
    check_folder,
    check_model,
    count,
    limits_of,
)
from longspan.cli.parsing import Verb
from longspan.errors import InputError, bad

if TYPE_CHECKING:
    from longspan.evaluate.answers import Outcome
    from longspan.evaluate.figures import Row
    from longspan.evaluate.questions import Questions
    from longspan.reader import Reader

    Pair = tuple[Row, list[Outcome]]

COLLECTIONS = ("questions", "longembed_qmsum", "rfc", "qmsum", "nq")


def add_to(verbs: "argparse._SubParsersAction[Verb]") -> None:
    """Declare the verb."""
    example = "longspan eval search --questions mine.jsonl --documents docs/"
    verb = verbs.add_parser(
        "eval", help="measure the quality of a model on collections that you have", examples=[example]
    )
    subjects = verb.add_subparsers(metavar="SUBJECT", required=True)
    search = subjects.add_parser(
        "search",
        help="how well answers, passages and documents are found",
        examples=[f"{example} --html report.html", "longspan eval search --rfc rfcs/ --limit-questions 50"],
    )
    option = search.add_argument
    option(
        "--questions",
        type=Path,
        metavar="FILE",
        help="JSON lines with file, question and answers; - is standard input",
    )
    option("--documents", nargs="+", metavar="DIR", help="what --questions is about: folders or name=folder")
    option("--longembed-qmsum", type=Path, metavar="DIR", help="QMSum's train/ and val/: summary to meeting")
    option("--rfc", type=Path, metavar="DIR", help="RFCs as .txt: abstract to document")
    option("--qmsum", type=Path, metavar="DIR", help="QMSum's meetings: question to passage")
    option("--nq", type=Path, metavar="FILE", help="NQ with gold passages, stacked to documents")
    add_model(search)
    help_ = "the short model (default: what the built-in model was built from)"
    option("--short", default="short", metavar="MODEL", help=help_)
    option("--rerank", metavar="MODEL", help="a cross-encoder, for a row where it ranks our results again")
    option("--limit", type=count, default=8192, metavar="N", help="tokens of an RFC (default: 8192)")
    option("--limit-questions", type=count, metavar="N", help="only the first N questions, for a trial")
    option("--index", type=Path, metavar="DIR", help="keep the index (and others beside it) for the next run")
    option("--methods", metavar="NAMES", help="only these rows: names, separated by commas")
    option("--html", type=Path, metavar="FILE", help="write a page with every question and what was found")
    option("--json", action="store_true", help="print JSON")
    add_limits(search)
    search.set_defaults(run=run)
    eval_char_lm.add_to(subjects)


def run(arguments: argparse.Namespace) -> int:
    """Print each row as soon as it is measured; the status is 3 if some questions cannot be used."""
    _check(arguments)
    jobs, questions = _jobs(arguments)
    above, tables = None, dict[str, "list[Row]"]()
    method, shown = "", list["Outcome"]()
    for row, outcomes in (pair for job in jobs for pair in job):
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

        arguments.html.write_text(page([*tables.values()], questions, method, shown), encoding="utf-8")
    return 3 if questions and questions.warnings else 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuse what cannot be measured or written before anything is read."""
    if not any(getattr(arguments, name) for name in COLLECTIONS):
        names = ", ".join("--" + name.replace("_", "-") for name in COLLECTIONS)
        raise InputError(f"There is nothing to measure: give at least one of {names}.")
    if arguments.html:
        arguments.html = check_file("--html", arguments.html)
    if arguments.index:
        arguments.index = check_folder("--index", arguments.index).absolute()
    if arguments.rerank and not arguments.questions:
        raise bad("--rerank", "given with --questions", arguments.rerank)
    from longspan.hub import DEFAULT

    for name, usual in ((arguments.model, DEFAULT), (arguments.short, "short"), (arguments.rerank, None)):
        if name != usual:  # the built-in model is fetched if a row needs it
            check_model(name)


def _jobs(arguments: argparse.Namespace) -> "tuple[list[Iterator[Pair]], Questions | None]":
    """What is measured, in this order: every collection is read first, so that a mistake is told at once."""
    from longspan.evaluate import answers, collections, longembed, peers, retrieval

    @cache
    def long() -> "Reader":
        from longspan.loading import load

        return load(arguments.model, task="encode", overflow="window")

    @cache
    def short() -> "Reader":
        from longspan.builtin import short_folder
        from longspan.loading import load

        return load(short_folder() if arguments.short == "short" else arguments.short, task="encode")

    methods = None if arguments.methods is None else [name.strip() for name in arguments.methods.split(",")]
    index, most = arguments.index, arguments.limit_questions
    modes = [mode for mode in answers.MODES if methods is None or mode in methods]
    jobs, questions = list["Iterator[Pair]"](), _questions(arguments)
    meetings = arguments.longembed_qmsum and longembed.longembed_qmsum(arguments.longembed_qmsum).limited(
        most
    )
    rfcs = arguments.rfc and collections.rfc(arguments.rfc).limited(most)
    sources = ((arguments.qmsum, collections.qmsum), (arguments.nq, collections.nq))
    passages = [read(path).limited(most) for path, read in sources if path]
    if questions:
        if modes:
            how = arguments.model, index, modes, _reranker(arguments.rerank), limits_of(arguments)
            jobs.append(answers.by_index(questions, *how))
        names = [name for name in peers.PEERS if methods is None or name in methods]
        jobs.append(peers.by_peers(questions, short, index, names))
    rows = list["Iterator[Row]"]()
    if meetings and modes:
        folder = index and index.with_name(f"{index.name}-longembed")
        rows.append(longembed.by_ndcg(meetings, arguments.model, folder, modes))
    if rfcs:
        rows.append(retrieval.by_document(rfcs, short(), long(), arguments.limit, methods))
    rows += [retrieval.by_passage(collection, short(), long(), methods) for collection in passages]
    return [*jobs, ((row, list["Outcome"]()) for own in rows for row in own)], questions


def _questions(arguments: argparse.Namespace) -> "Questions | None":
    if not arguments.questions:
        return None
    from longspan.evaluate.questions import load_questions, warn

    documents, limit = arguments.documents or [], arguments.limit_questions
    questions = load_questions(arguments.questions, documents, limit, limits_of(arguments))
    warn(questions)
    return questions


def _reranker(name: str | None) -> "Reader | None":
    if name is None:
        return None
    from longspan.search.rerank import load_reranker

    return load_reranker(name)
