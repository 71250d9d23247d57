"""`longspan index PATH...`: files and folders that are searched later; look after what is in the index."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, cast

from longspan.cli.options import MODEL, add_adapter, add_limits, check_model
from longspan.cli.parsing import Verb
from longspan.cli.terminal import say
from longspan.cli.updating import agreed, confirm, fill, opened, tell, tell_report
from longspan.errors import InputError, bad, guess, whole

if TYPE_CHECKING:
    from longspan.search.index import Index

SECONDS = 5
"""Between two looks at the files that are watched."""
NOTICE = 1.0
"""Seconds to wait for another process before the user is told."""


def add_to(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    verb = cast(
        Verb,
        verbs.add_parser(
            "index",
            help="read files and folders to search them later",
            examples=[
                "longspan index docs/ ~/contracts",
                "longspan index",
                "longspan index --show",
                "longspan index docs/ --index ./docs.index --watch",
            ],
        ),
    )
    verb.add_argument(
        "paths", nargs="*", metavar="PATH", help="files and folders (default: those that were added before)"
    )
    add_common(verb)
    verb.add_argument("--words-only", "--no-vectors", action="store_true", help="the model reads next time")
    verb.add_argument(
        "--tokens", metavar="KIND", help="keep the vectors of tokens as 1bit (default), 8bit or off"
    )
    verb.add_argument("--ocr", action="store_true", help="read scanned pages and pictures by tesseract")
    verb.add_argument(
        "--rebuild",
        action="store_true",
        help="read everything again into a new index, which then replaces it",
    )
    verb.add_argument("--yes", action="store_true", help="forget more than half of the files without asking")
    verb.add_argument("--prune", action="store_true", help="forget files that no longer exist")
    verb.add_argument("--check", action="store_true", help="compare the whole index with its checksums")
    verb.add_argument(
        "--watch", type=int, metavar="[SECONDS]", help="look for changes every few seconds, until Ctrl-C"
    )
    other = verb.add_mutually_exclusive_group()
    other.add_argument("--list", action="store_true", help="all indexes that have names")
    other.add_argument("--show", action="store_true", help="the files of the index, and what takes space")
    other.add_argument("--remove", nargs="+", metavar="PATH", help="forget files and folders")
    verb.numbers = {"--watch": SECONDS}
    verb.set_defaults(run=run)


def add_common(verb: argparse.ArgumentParser) -> None:
    """Declare the options that `index` and `search` share."""
    verb.add_argument("--index", metavar="NAME|DIR", help="another index than the default one")
    verb.add_argument("--model", metavar="MODEL", help=f"{MODEL} (default: the built-in model)")
    add_adapter(verb)
    verb.add_argument("--json", action="store_true", help="print JSON")
    add_limits(verb)


def run(arguments: argparse.Namespace) -> int:
    """Print what was done; the status is 3 if some files could not be read."""
    from longspan.cli import catalog
    from longspan.cli.watch import watch
    from longspan.search.library import exists, place

    if arguments.watch is not None:
        whole("--watch", arguments.watch, 1)
    folder = place(arguments.index, arguments.model, arguments.adapter)
    if arguments.list:
        return catalog.show_all(arguments.json)
    check_paths(arguments.paths)
    tell_new(folder, arguments)
    if (arguments.show or arguments.remove or arguments.prune or not arguments.paths) and not exists(folder):
        raise empty(folder)
    if arguments.show:
        return catalog.show(folder, arguments.json)
    if arguments.model is not None and not arguments.words_only:
        check_model(arguments.model)
    _notice_others(folder)
    if arguments.rebuild and exists(folder):
        from longspan.cli.rebuild import rebuild

        status = rebuild(folder, arguments)
        if status or arguments.watch is None:
            return status
    with opened(folder, arguments) as index:
        if arguments.remove:
            return _remove(index, arguments)
        if arguments.prune:
            return _prune(index, arguments)
        status = 0 if arguments.rebuild else _update(index, roots_of(index, arguments.paths), arguments)
        return (
            status if arguments.watch is None else watch(index, roots_of(index, arguments.paths), arguments)
        )


def _notice_others(folder: Path) -> None:
    """Say so if another process has to be waited for."""
    if not folder.is_dir():
        return
    from longspan.search.lock import Busy, writing

    try:
        with writing(folder, NOTICE):
            pass
    except Busy:
        say("another process is changing the index; waiting for it.")


def check_paths(paths: list[str]) -> None:
    """Refuse a path that does not exist before an index is created for it."""
    for path in paths:
        if not Path(path).expanduser().exists():
            raise bad("PATH", "a file or folder that exists", path)


def empty(folder: Path) -> InputError:
    """The error for an index that does not exist."""
    from longspan.search.library import names

    repair = guess(folder.name, names()) or "Nothing is there yet: fill it with `longspan index PATH...`."
    return bad("--index", "an index", str(folder), repair)


def tell_new(folder: Path, arguments: argparse.Namespace) -> None:
    """Say so if files will be read into a new index: its name may be a slip of the keyboard."""
    from longspan.search.library import exists, names

    if arguments.index is not None and arguments.paths and not exists(folder):
        say(f"{folder} is a new index. {guess(folder.name, names())}".rstrip())


def roots_of(index: "Index", paths: list[str]) -> list[Path]:
    """The paths, or without any all that the index was filled with and that still exist."""
    from longspan.search.library import Catalog
    from longspan.search.update import listed

    with Catalog(index.folder) as known:
        return listed(paths) or [root for root in known.roots if root.exists()]


def _update(index: "Index", roots: list[Path], arguments: argparse.Namespace) -> int:
    """Bring the index up to date and say what was done."""
    report = fill(index, roots, arguments)
    if report.missing and agreed(report.missing, len(index.files), arguments):
        report.removed += index.remove(report.missing)
        report.missing = []
    return tell_report(index, report, arguments)


def _remove(index: "Index", arguments: argparse.Namespace) -> int:
    """Forget files and folders, whether they still exist or not."""
    from longspan.search.update import listed, within

    roots = listed(arguments.remove)
    confirm([path for path in index.files if within(path, roots)], len(index.files), arguments)
    count = index.remove(roots)
    if not count:
        say(f"the index holds none of {', '.join(arguments.remove)}.")
    return tell(index, {"removed": count}, arguments)


def _prune(index: "Index", arguments: argparse.Namespace) -> int:
    """Forget files that no longer exist."""
    confirm(index.missing, len(index.files), arguments)
    return tell(index, {"pruned": index.prune()}, arguments)
