"""`longspan index PATH...`: files and folders that are searched later; look after what is in the index."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

from longspan.cli.options import MODEL, add_limits, check_model, limits_of
from longspan.cli.parsing import Verb
from longspan.cli.terminal import counted, say
from longspan.errors import CheckpointError, InputError, bad, missing, whole

if TYPE_CHECKING:
    from longspan.search.index import Index
    from longspan.search.update import Report

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
    verb.add_argument("--rebuild", action="store_true", help="forget and read everything again")
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
    verb.add_argument("--json", action="store_true", help="print JSON")
    add_limits(verb)


def run(arguments: argparse.Namespace) -> int:
    """Print what was done; the status is 3 if some files could not be read."""
    from longspan.cli import catalog
    from longspan.cli.watch import watch
    from longspan.search.library import exists, place

    if arguments.watch is not None:
        whole("--watch", arguments.watch, 1)
    folder = place(arguments.index, arguments.model)
    if arguments.list:
        return catalog.show_all(arguments.json)
    check_paths(arguments.paths)
    if (arguments.show or arguments.remove or arguments.prune or not arguments.paths) and not exists(folder):
        raise empty(folder)
    if arguments.show:
        return catalog.show(folder, arguments.json)
    if arguments.model is not None and not arguments.words_only:
        check_model(arguments.model)
    _notice_others(folder)
    paths = _rebuilt(folder, arguments) if arguments.rebuild else arguments.paths
    with opened(folder, arguments) as index:
        if arguments.remove:
            return _remove(index, arguments)
        if arguments.prune:
            return _tell(index, {"pruned": index.prune()}, arguments)
        status = _update(index, paths, arguments)
        return status if arguments.watch is None else watch(index, roots_of(index, paths), arguments)


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
    return bad(
        "--index", "an index", str(folder), "Nothing is there yet: fill it with `longspan index PATH...`."
    )


def opened(folder: Path, arguments: argparse.Namespace) -> "Index":
    """The index in a folder, with the model that the options name."""
    from longspan.search.index import Index
    from longspan.search.library import model_name

    return Index.open(folder, model_name(arguments.model), tokens=getattr(arguments, "tokens", None))


def _rebuilt(folder: Path, arguments: argparse.Namespace) -> list[str]:
    """Throw the content of the index away; all paths that it is to be filled with again."""
    from longspan.search.library import Catalog, exists
    from longspan.search.lock import writing
    from longspan.search.store import Store

    if not exists(folder):
        return list(arguments.paths)
    try:
        with Catalog(folder) as known:
            paths = [*arguments.paths, *(str(root) for root in known.roots if root.exists())]
        with opened(folder, argparse.Namespace(model=None)) as index:
            index.clear()
    except (CheckpointError, InputError):  # it is damaged, or of another version
        if not arguments.paths:
            raise missing("PATH", "what the index is to hold, as it cannot tell itself") from None
        with writing(folder):
            Store.discard(folder)
        return list(arguments.paths)
    return paths


def roots_of(index: "Index", paths: list[str]) -> list[Path]:
    """The paths, from now on remembered, or without any all that are remembered and still exist."""
    from longspan.search.library import Catalog
    from longspan.search.update import listed

    with Catalog(index.folder) as known:
        known.add_roots(listed(paths))
        return listed(paths) or [root for root in known.roots if root.exists()]


def _update(index: "Index", paths: list[str], arguments: argparse.Namespace) -> int:
    """Bring the index up to date and say what was done."""
    roots = roots_of(index, paths)
    try:
        report = index.add(
            roots,
            vectors=not arguments.words_only,
            progress=False if arguments.quiet else None,
            ocr=arguments.ocr,
            limits=limits_of(arguments),
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; what was read is kept, and the next run goes on.") from None
    tell_problems(index, report)
    if arguments.check:
        index.verify()
    _tell(index, dict(report.as_dict()), arguments, str(report))
    return 3 if report.failed else 0


def tell_problems(index: "Index", report: "Report") -> None:
    """Say which files could not be read, and what is missing."""
    for path, reason in [*report.failed, *report.gaps]:
        say(reason if str(path) in reason else f"{path}: {reason}")
    if not len(index):
        skipped = f"; {counted(report.skipped, 'file')} skipped" if report.skipped else ""
        say(f"there are no documents to search{skipped}.")
    if report.truncated:
        say(f"{report.truncated:,} tokens were not read.")


def _tell(
    index: "Index", done: dict[str, object], arguments: argparse.Namespace, sentence: str | None = None
) -> int:
    """Print the state of the index and what was done."""
    from longspan.search.results import printable

    read = index.share_read
    if arguments.json:
        state = {"index": str(index.folder), "model": index.model, "files": len(index.files)}
        print(json.dumps({**state, "passages": len(index), "share_read": read, **done}))
    elif not arguments.quiet:
        said = sentence or ", ".join(f"{count} {name}" for name, count in done.items())
        part = "" if read == 1 or not len(index) else f", {int(100 * read)}% read by the model"
        counts = f"{counted(index.files, 'file')}, {counted(index, 'passage')}"
        print(f"{printable(str(index.folder))}: {counts}{part}; {said}")
    return 0


def _remove(index: "Index", arguments: argparse.Namespace) -> int:
    """Forget files and folders, whether they still exist or not."""
    from longspan.search.library import Catalog
    from longspan.search.update import listed

    count = index.remove(arguments.remove)
    with Catalog(index.folder) as known:
        known.remove_roots(listed(arguments.remove))
    if not count:
        say(f"the index holds none of {', '.join(arguments.remove)}.")
    return _tell(index, {"removed": count}, arguments)
