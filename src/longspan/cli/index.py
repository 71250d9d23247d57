"""`longspan index PATH...`: bring an index up to date, check it, or rebuild it."""

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from longspan.errors import bad

if TYPE_CHECKING:
    from longspan.search.index import Index
    from longspan.search.update import Report


def add_to(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser(
        "index", help="read files and folders to search them later", epilog="example: longspan index docs/"
    )
    verb.add_argument("paths", nargs="*", metavar="PATH", help="files and folders")
    add_common(verb)
    verb.add_argument("--check", action="store_true", help="compare the whole index with its checksums")
    verb.set_defaults(run=run)


def add_common(verb: argparse.ArgumentParser) -> None:
    """Declare the options that `index` and `search` share."""
    verb.add_argument(
        "--index", type=Path, metavar="DIR", help="where the index is stored (default: in the cache folder)"
    )
    verb.add_argument(
        "--model", metavar="MODEL", help="a folder or a name on the hub (default: the built-in)"
    )
    verb.add_argument("--rebuild", action="store_true", help="throw the index away first")
    verb.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print what was done; the status is 3 if some files could not be read."""
    with opened(arguments) as index:
        report = updated(index, arguments.paths)
        if arguments.check:
            index.verify()
        if arguments.json:
            state = {"index": str(index.folder), "model": index.model, "files": len(index.files)}
            print(json.dumps({**state, "passages": len(index), **report.as_dict()}))
        else:
            print(f"{index.folder}: {len(index.files)} files, {len(index)} passages; {report}")
    return 3 if report.failed else 0


def opened(arguments: argparse.Namespace) -> "Index":
    """The index that the options name; without --index, one in the cache for these paths and this model."""
    if not arguments.paths and arguments.index is None:
        raise bad("PATH", "given, unless --index is", None)
    for path in arguments.paths:
        if not Path(path).expanduser().exists():  # before an index is created for it
            raise bad("PATH", "a file or folder that exists", path)
    from longspan.search.index import Index
    from longspan.search.store import Store

    folder = arguments.index or _place(arguments.paths, arguments.model)
    if arguments.rebuild:
        Store.discard(folder)
    return Index.open(folder, arguments.model)


def _place(paths: list[str], model: str | None) -> Path:
    from longspan.hub import cache_folder

    roots = sorted({str(Path(path).expanduser().absolute()) for path in paths})
    mark = hashlib.sha256("\0".join([model or "", *roots]).encode("utf-8", "surrogateescape"))
    return cache_folder() / "indexes" / mark.hexdigest()[:16]


def updated(index: "Index", paths: list[str]) -> "Report":
    """Bring the index up to date; failures and what was not read go to stderr."""
    from longspan.search.results import printable

    try:
        report = index.add(paths)
    except KeyboardInterrupt:
        print("longspan: stopped; what was read is kept, and the next run goes on.", file=sys.stderr)
        raise
    for path, reason in report.failed:
        print(f"longspan: {printable(str(path))}: {printable(reason)}", file=sys.stderr)
    if not len(index):
        skipped = f"; {len(report.skipped)} files were skipped" if report.skipped else ""
        print(f"longspan: there are no documents to search{skipped}.", file=sys.stderr)
    if report.truncated:
        print(f"longspan: {report.truncated:,} tokens were not read.", file=sys.stderr)
    return report
