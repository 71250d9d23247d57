"""Files and folders given to a command, and standard input."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from longspan.cli.options import check_paths
from longspan.cli.terminal import detail, say
from longspan.errors import bad

if TYPE_CHECKING:
    from longspan.text.documents import Limits

STANDARD_INPUT = "-"
DOCUMENTS = "files and folders; - is standard input"
Failures = list[dict[str, str]]


def files(paths: list[str], failed: Failures, *, ocr: bool) -> list[Path]:
    """The files, and those in the folders; what cannot be looked into is added to `failed`."""
    from longspan.search.update import listed
    from longspan.text.walk import walk

    named = [path for path in paths if path != STANDARD_INPUT]
    check_paths("FILE", named)
    found = [Path(STANDARD_INPUT)] if STANDARD_INPUT in paths else []
    found += walk(
        listed(named),
        pictures=ocr,
        skipped=lambda path, reason: detail(f"{path}: skipped, {reason}"),
        failed=lambda path, reason: fail(failed, path, reason),
    )
    if not found and not failed:
        raise bad("FILE", "documents, or folders that hold some", ", ".join(paths))
    return found


def text_of(path: Path, failed: Failures, limits: "Limits", *, ocr: bool) -> str | None:
    """The text of a file or of standard input; None for a file that cannot be read, added to `failed`."""
    from longspan.errors import LongspanError
    from longspan.text.documents import read, read_stream

    try:
        if str(path) == STANDARD_INPUT:
            document = read_stream(sys.stdin.buffer, limits=limits)
        else:
            document = read(path, limits=limits, ocr=ocr)
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
        file, reason = failure["file"], failure["reason"]
        say(reason if f"`{file}`" in reason else f"{file}: {reason}")
    return 3 if failed else 0
