"""`longspan search QUERY PATH...`: the passages of files and folders that answer a question."""

import argparse
import json
import os
import shutil
import sys

from longspan.cli.index import add_common, opened, updated


def add_to(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser(
        "search",
        help="find passages of documents by meaning and by words",
        epilog='example: longspan search "who may end the contract?" contracts/',
    )
    verb.add_argument("query", metavar="QUERY", help="a question, a sentence or some words")
    verb.add_argument("paths", nargs="*", metavar="PATH", help="files and folders (default: all of --index)")
    verb.add_argument("--top", type=int, default=5, metavar="N", help="passages to show (default: 5)")
    verb.add_argument("--mode", default="hybrid", metavar="MODE", help="hybrid (default), dense or bm25")
    verb.add_argument("--by", default="passage", metavar="WHAT", help="passage (default) or document")
    add_common(verb)
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the best passages; the status is 3 if some files could not be read."""
    from longspan.search.rank import check_options

    # Before reading, which may take hours.
    check_options(arguments.query, arguments.top, arguments.mode, arguments.by)
    with opened(arguments) as index:
        report = updated(index, arguments.paths)
        if not arguments.json and (report.encoded or report.moved or report.removed):
            print(f"longspan: {report}", file=sys.stderr)
        inside = arguments.paths or None
        hits = index.search(
            arguments.query, arguments.top, mode=arguments.mode, by=arguments.by, inside=inside
        )
        if arguments.json:
            state = {"query": arguments.query, "mode": arguments.mode, "by": arguments.by}
            state |= {"index": str(index.folder), "model": index.model}
            results = [{"rank": rank, **hit.as_dict()} for rank, hit in enumerate(hits, 1)]
            print(json.dumps({**state, "results": results, "update": report.as_dict()}))
        else:
            terminal = sys.stdout.isatty()
            width = min(110, shutil.get_terminal_size().columns) if terminal else None
            lines = hits.lines(color=terminal and not os.environ.get("NO_COLOR"), width=width)
            print("\n\n".join(lines) or repr(hits))
    return 3 if report.failed else 0
