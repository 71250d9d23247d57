"""The command `longspan`: one verb per file, nothing heavy imported before a verb runs."""

import gc
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from types import FrameType
from typing import NoReturn

from longspan._version import __version__
from longspan.cli import terminal
from longspan.cli.parsing import Verb
from longspan.errors import CheckpointError, DocumentError, InputError, LongspanError

VERBS = {
    "search": "search",
    "summarize": "summarize",
    "index": "index",
    "encode": "encode",
    "rank": "rank",
    "lengthen": "lengthen",
    "corpus": "corpus",
    "pretrain": "pretrain",
    "pull": "models",
    "models": "models",
    "doctor": "doctor",
    "draw": "inspect",
    "explain": "inspect",
    "bench": "bench",
    "eval": "eval",
    "train": "train",
    "sample": "sample",
    "completion": "completion",
}
"""The module of each verb."""
BUG = 70
"""The exit status for what Longspan never meant to raise; sysexits.h calls it EX_SOFTWARE."""
EXITS = f"""exit status:
  0    done; of search: the first result is a good answer
  1    failed; of search: no result is a good answer
  2    a mistake in the arguments, told before work begins
  3    some files could not be read, the rest is done
  4    a file is refused, since it is damaged, unsafe or not readable
  {BUG}   a bug in Longspan
  130  stopped by Ctrl-C
  143  ended by SIGTERM"""
EXAMPLES = [
    'longspan search "who may end the contract?" contracts/',
    "longspan index ~/Documents",
    "longspan summarize minutes.docx --model MODEL",
    "longspan COMMAND --help",
]


class Terminated(BaseException):
    """SIGTERM came: files are closed and temporary ones removed on the way out, as after Ctrl-C."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status, one of EXITS; a failure is told in one line."""
    given = sys.argv[1:] if argv is None else argv
    top = parser(next((word for word in given if not word.startswith("-")), ""))
    if not given:
        top.print_help(sys.stderr)
        return 2
    try:
        arguments = top.parse_args(given)
        if arguments.quiet and arguments.verbose:
            top.error("argument --verbose: not allowed with argument --quiet")
    except SystemExit as stop:  # argparse has told what was wrong, or printed the help
        return int(stop.code or 0)
    terminal.set_verbosity(terminal.Verbosity(1 - arguments.quiet + arguments.verbose))
    if arguments.quiet or arguments.verbose:
        import logging

        logging.getLogger("longspan").setLevel(logging.ERROR if arguments.quiet else logging.INFO)
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return 0
    except (Exception, KeyboardInterrupt, Terminated) as error:
        return failed(error)
    return status


def failed(error: BaseException) -> int:
    """Tell the user in one line what went wrong; the exit status."""
    status, line = explained(error)
    terminal.say(line)
    if status == BUG and terminal.is_verbose():
        import traceback

        traceback.print_exception(error)
    return status


def explained(error: BaseException) -> tuple[int, str]:
    """The exit status that an error means, and what is said of it."""
    text = str(error)
    match error:
        case KeyboardInterrupt():
            return 130, text or "stopped."
        case Terminated():
            return 143, "ended by SIGTERM."
        case LongspanError():
            refused = isinstance(error, CheckpointError | DocumentError)
            return 2 if isinstance(error, InputError) else 4 if refused else 1, text
        case OSError():
            where = f": {os.fsdecode(error.filename)}" if isinstance(error.filename, str | bytes) else ""
            return 1, f"{error.strerror or text}{where}"
        case ModuleNotFoundError() if error.name and not error.name.startswith("longspan"):
            return 1, f"the package {error.name} is not installed. Try `pip install {error.name}`."
        case MemoryError():
            return 1, "there is not enough memory for this."
        case RuntimeError() if "can't allocate memory" in text:  # torch's words
            return 1, "there is not enough memory for this."
    kind = type(error).__name__
    hint = "" if terminal.is_verbose() else " --verbose shows where."
    return BUG, f"this is a bug in Longspan, please report it: {kind}: {text or 'no message'}.{hint}"


def script() -> NoReturn:
    """The program: torch's many objects are seldom searched for garbage, and never torn down at the end."""
    gc.set_threshold(100_000, 20, 20)
    _open_streams()
    warnings.showwarning = lambda message, *_, **__: terminal.note(str(message))
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    try:
        status = main()
    except (KeyboardInterrupt, Terminated) as error:  # outside of a verb
        status = failed(error)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(status)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def _open_streams() -> None:
    """Let what cannot be encoded be shown as its code, and let a closed stream be an empty one.

    A closed one would leave its number to the next file that is opened, which would then be written into.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def parser(verb: str = "") -> Verb:
    """All verbs and their options; if one is named, only those of its module, which is quicker."""
    top = Verb(
        prog="longspan",
        description="Transformers that read whole long documents.",
        examples=EXAMPLES,
        epilog=EXITS,
    )
    top.add_argument("--version", action="version", version=f"longspan {__version__}")
    top.set_defaults(quiet=False, verbose=False)
    verbs = top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Verb)
    for name in [VERBS[verb]] if verb in VERBS else dict.fromkeys(VERBS.values()):
        import_module(f"longspan.cli.{name}").add_to(verbs)
    return top
