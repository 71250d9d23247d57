"""`longspan index --watch`: follow files by looking at them every few seconds."""

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from longspan.cli.terminal import say

if TYPE_CHECKING:
    from longspan.search.index import Index
    from longspan.search.update import Report

NAMED = 20
"""How many changed files are named at most."""
Stamps = dict[Path, tuple[int, int]]


def watch(index: "Index", roots: list[Path], arguments: argparse.Namespace) -> int:
    """Follow files and folders until Ctrl-C, and print what changes."""
    from longspan.search.library import Catalog
    from longspan.search.lock import Busy

    said: set[tuple[Path, str]] = set()
    say(f"watching {', '.join(map(str, roots))}; Ctrl-C ends it.")
    try:
        while True:
            time.sleep(arguments.watch)
            with Catalog(index.folder) as known:
                before = known.stamps()
                present = [root for root in roots if root.exists()]  # a disk may come back
                try:
                    report = index.add(
                        present, vectors=not arguments.words_only, ocr=arguments.ocr, wait=arguments.watch
                    )
                except Busy:
                    continue
                _tell(before, known.stamps(), report, arguments.json)
            problems = {*report.failed, *((path, "gone, but kept in the index") for path in report.missing)}
            for path, reason in sorted(problems - said)[:NAMED]:
                say(f"{path}: {reason}")
            said |= problems
    except KeyboardInterrupt:
        say("stopped; the index is up to date but for what has changed just now.")
        return 0


def _tell(before: Stamps, after: Stamps, report: "Report", as_json: bool) -> None:
    """Print which files changed, if any did."""
    from longspan.search.results import printable

    changes = {
        "added": sorted(after.keys() - before.keys()),
        "changed": sorted(path for path in after.keys() & before.keys() if after[path] != before[path]),
        "removed": sorted(before.keys() - after.keys()),
    }
    if not any(changes.values()):
        return
    if as_json:
        files = {kind: list(map(str, paths)) for kind, paths in changes.items()}
        print(json.dumps({**report.as_dict(), **files}), flush=True)
        return
    lines = [f"{kind} {printable(str(path))}" for kind, paths in changes.items() for path in paths]
    more = [f"and {len(lines) - NAMED} more"] if len(lines) > NAMED else []
    print("\n".join([f"{time.strftime('%H:%M:%S')} {line}" for line in lines[:NAMED]] + more), flush=True)
