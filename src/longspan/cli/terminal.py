"""What the terminal can show, what is said to the user, and files opened from it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sized
from enum import IntEnum

from longspan.errors import LongspanError

WIDEST = 110
PLAIN = ("", "dumb", "linux", "cons25", "emacs")
"""Values of TERM that are no good for hyperlinks."""


def is_terminal() -> bool:
    """Whether somebody reads along."""
    return sys.stdout.isatty()


def color() -> bool:
    """Whether bold and dim are shown."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return is_terminal() and not plain


def links() -> bool:
    """Whether hyperlinks (OSC 8) are shown; a terminal that does not know them ignores them."""
    if os.name == "nt":
        return color() and bool(os.environ.get("WT_SESSION") or os.environ.get("TERM_PROGRAM"))
    return color() and os.environ.get("TERM", "") not in PLAIN


def width() -> int | None:
    """Characters of a line; None if nobody reads along."""
    return min(WIDEST, shutil.get_terminal_size().columns) if is_terminal() else None


def open_file(file: str, url: str) -> None:
    """Show a file in the program that the user has for it."""
    if os.name == "nt":
        os.startfile(file)  # type: ignore[attr-defined, unused-ignore]
        return
    program = "open" if sys.platform == "darwin" else "xdg-open"
    found = shutil.which(program)
    if found is None:
        raise LongspanError(f"`{program}` is not installed, so the file cannot be opened: {file}")
    target = url if url.rpartition("#")[2].startswith("page=") and program == "xdg-open" else file
    process = subprocess.Popen(
        [found, target],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    process.returncode = 0  # nobody waits for it, nor warns that nobody did


def size(count: float) -> str:
    """Bytes as people read them.

    >>> size(999), size(1_234_567)
    ('999 bytes', '1.2 MB')
    """
    for unit, power in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= power:
            return f"{count / power:.1f} {unit}"
    return f"{count:.0f} bytes"


def counted(things: int | Sized, name: str) -> str:
    """How many there are.

    >>> counted(1, "file"), counted(["a", "b"], "passage")
    ('1 file', '2 passages')
    """
    count = things if isinstance(things, int) else len(things)
    return f"{count} {name}{'s' * (count != 1)}"


class Verbosity(IntEnum):
    """How much is said beside the output."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


_verbosity = Verbosity.NORMAL


def set_verbosity(verbosity: Verbosity) -> None:
    """Choose how much this process says; there is one terminal, hence one choice."""
    global _verbosity
    _verbosity = verbosity


def is_quiet() -> bool:
    """Whether only problems are said, and no progress is shown."""
    return _verbosity == Verbosity.QUIET


def is_verbose() -> bool:
    """Whether everything is said."""
    return _verbosity == Verbosity.VERBOSE


def say(text: str) -> None:
    """Tell the user what is wrong or must be known; what a terminal would obey is left out."""
    from longspan.search.highlight import printable

    clean = "\n".join(map(printable, text.split("\n")))
    print(f"longspan: {clean}", file=sys.stderr, flush=True)


def note(text: str) -> None:
    """Tell the user what is done, unless --quiet is given."""
    if _verbosity >= Verbosity.NORMAL:
        say(text)


def detail(text: str) -> None:
    """Tell the user what only --verbose asks for."""
    if _verbosity >= Verbosity.VERBOSE:
        say(text)
