"""Filling an index from the command line: what is said of it, and what is asked before much is forgotten."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from longspan.cli.options import limits_of
from longspan.cli.terminal import counted, detail, say
from longspan.errors import bad

if TYPE_CHECKING:
    from longspan.search.index import Index
    from longspan.search.update import Report


GAPS = 20
"""Files of which something is missing that are named."""


def opened(folder: Path, arguments: argparse.Namespace) -> "Index":
    """The index in a folder, with the model that the options name."""
    from longspan.search.index import Index
    from longspan.search.library import model_name

    tokens = getattr(arguments, "tokens", None)
    return Index.open(folder, model_name(arguments.model), tokens=tokens, adapter=arguments.adapter)


def fill(index: "Index", roots: list[Path], arguments: argparse.Namespace) -> "Report":
    """Read files into an index as the options say."""
    try:
        return index.add(
            roots,
            vectors=not arguments.words_only,
            progress=False if arguments.quiet else None,
            ocr=arguments.ocr,
            limits=limits_of(arguments),
            forget=True if arguments.yes else None,
        )
    except KeyboardInterrupt:
        kept = "all but what was just being read is kept, and the next run goes on."
        raise KeyboardInterrupt(f"stopped; {kept}") from None


def tell_report(index: "Index", report: "Report", arguments: argparse.Namespace) -> int:
    """Say what was done, and what could not be; the status: 3 if anything could not."""
    tell_problems(index, report)
    for path, reason in report.skipped:
        detail(f"{path}: skipped, {reason}")
    sentence = str(report)
    if arguments.check:
        index.verify()
        sentence += "; checked: the whole index is as it was written"
    done = dict[str, object](report.as_dict()) | ({"checked": True} if arguments.check else {})
    tell(index, done, arguments, sentence)
    return 3 if report.failed or report.missing else 0


def tell_problems(index: "Index", report: "Report") -> None:
    """Say which files could not be read, and what is missing."""
    for path, reason in dict.fromkeys([*report.failed, *report.gaps[:GAPS]]):
        say(reason if str(path) in reason else f"{path}: {reason}")
    if len(report.gaps) > GAPS:
        say(f"something is missing of {counted(len(report.gaps) - GAPS, 'more file')}; --json names them.")
    if report.missing:
        say(f"{counted(report.missing, 'file')} are gone, such as {report.missing[0]}.")
        say("they are more than half of a folder, so the index keeps them; `longspan index --yes` does not.")
    if not len(index):
        say(f"there are no documents to search{f'; {report.skips}' if report.skipped else ''}.")
    if report.truncated:
        say(f"{report.truncated:,} tokens were not read.")


def tell(
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


def confirm(lost: list[Path], count: int, arguments: argparse.Namespace, kept: str = "") -> None:
    """Raise an error unless the user agrees to forget more than half of the files; `kept` is part of it."""
    if 2 * len(lost) > count and not agreed(lost, count, arguments):
        value = f"{len(lost)} of {count}, such as {lost[0]}"
        repair = f"{kept} Use --yes if that is right.".strip()
        raise bad("what is forgotten", "at most half of the files of the index", value, repair)


def agreed(lost: list[Path], count: int, arguments: argparse.Namespace) -> bool:
    """Whether more than half of the files may be forgotten: --yes says so, or the user does on a terminal."""
    if arguments.yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    say(f"{counted(lost, 'file')} of the {count} of the index will be forgotten, such as {lost[0]}.")
    print("Forget them? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
