"""`longspan eval search`: retrieval by whole documents, compared with chunks and BM25."""

import argparse
import json
import sys
from pathlib import Path

from longspan.errors import bad


def add_to(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser("eval", help="measure the quality of a model on collections that you have")
    subjects = verb.add_subparsers(metavar="subject", required=True)
    search = subjects.add_parser("search", help="retrieval of documents and passages")
    search.add_argument("--rfc", type=Path, metavar="DIR", help="RFCs as .txt: abstract to document")
    search.add_argument("--qmsum", type=Path, metavar="DIR", help="QMSum's meetings: question to passage")
    search.add_argument("--nq", type=Path, metavar="FILE", help="NQ with gold passages, stacked to documents")
    search.add_argument("--model", default="default", help="the long model (default: the built-in model)")
    search.add_argument(
        "--short", default="short", help="the short model (default: what the built-in model was built from)"
    )
    search.add_argument(
        "--limit", type=int, default=8192, metavar="N", help="tokens of an RFC (default: 8192)"
    )
    search.add_argument("--methods", metavar="NAMES", help="only these rows: names, separated by commas")
    search.add_argument("--json", action="store_true", help="print JSON")
    search.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print a row for each collection and method as soon as it is measured."""
    if not (arguments.rfc or arguments.qmsum or arguments.nq):
        raise bad("collection", "at least one of --rfc, --qmsum and --nq", None)
    from longspan.builtin import short_folder
    from longspan.evaluate import collections, retrieval
    from longspan.reader import load

    long = load(arguments.model, task="encode", overflow="window")
    short = load(short_folder() if arguments.short == "short" else arguments.short, task="encode")
    methods = None if arguments.methods is None else [name.strip() for name in arguments.methods.split(",")]
    rows = []
    if arguments.rfc:
        rfcs = collections.rfc(arguments.rfc)
        rows.append(retrieval.by_document(rfcs, short, long, arguments.limit, methods))
    if arguments.qmsum:
        rows.append(retrieval.by_passage(collections.qmsum(arguments.qmsum), short, long, methods))
    if arguments.nq:
        rows.append(retrieval.by_passage(collections.nq(arguments.nq), short, long, methods))
    for row in (row for table in rows for row in table):
        if arguments.json:
            print(json.dumps(row._asdict()))
        else:
            figures = "  ".join(f"{name} {value:.3f}" for name, value in row.figures.items())
            print(f"{row.collection:14}{row.method:28}{figures}  ({row.seconds:.0f} s)")
        sys.stdout.flush()
    return 0
