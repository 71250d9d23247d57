"""Files and folders given to a command, and standard input."""

import sys
from pathlib import Path

from longspan.cli.terminal import say

STANDARD_INPUT = "-"
Failures = list[dict[str, str]]


def files(paths: list[str], failed: Failures) -> list[Path]:
    """The files, and those in the folders; what cannot be looked into is added to `failed`."""
    from longspan.search.update import listed
    from longspan.text.walk import walk

    if paths == [STANDARD_INPUT]:
        return [Path(STANDARD_INPUT)]
    return list(walk(listed(paths), failed=lambda path, reason: fail(failed, path, reason)))


def text_of(path: Path, failed: Failures) -> str | None:
    """The text of a file or of standard input; None for a file that cannot be read, added to `failed`."""
    from longspan.errors import LongspanError
    from longspan.text.documents import WHOLE, read, read_stream

    if str(path) == STANDARD_INPUT:
        document = read_stream(sys.stdin.buffer, limits=WHOLE)
    else:
        try:
            document = read(path, limits=WHOLE)
        except (LongspanError, OSError) as error:
            fail(failed, path, getattr(error, "strerror", None) or str(error))
            return None
    if document.gap:
        say(f"{path}: {document.gap}")
    return document.text


def fail(failed: Failures, path: Path, reason: str) -> None:
    """Note that a file failed."""
    failed.append({"file": str(path), "reason": reason})


def report_failures(failed: Failures) -> int:
    """Print what failed to stderr; the exit status: 3 if anything did."""
    for failure in failed:
        say(f"{failure['file']}: {failure['reason']}")
    return 3 if failed else 0
