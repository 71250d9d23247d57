"""The command `longspan`: one verb per file, nothing heavy imported before a verb runs."""

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from longspan._version import __version__
from longspan.cli.parsing import Verb
from longspan.errors import CheckpointError, DocumentError, InputError, LongspanError

VERBS = ["search", "summarize", "index", "encode", "lengthen", "models", "doctor", "inspect", "bench", "eval"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 is success, 1 a failure, 2 a mistake in what was asked, told in one line.

    3: some inputs failed, the rest is done; 4: a file is refused, since it is damaged or not safe.
    """
    arguments = parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return 0
    except KeyboardInterrupt:
        return 130
    except (LongspanError, OSError) as error:
        from longspan.cli.terminal import say

        say(str(error))
        if isinstance(error, InputError):
            return 2
        return 4 if isinstance(error, (CheckpointError, DocumentError)) else 1
    return status


def script() -> NoReturn:
    """The program: torch's many objects are seldom searched for garbage, and never torn down at the end."""
    gc.set_threshold(100_000, 20, 20)
    try:
        status = main()
    except SystemExit as error:  # argparse has told what was wrong
        status = error.code if isinstance(error.code, int) else 0
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(status)


def parser() -> argparse.ArgumentParser:
    """All verbs and their options."""
    top = argparse.ArgumentParser(prog="longspan", description="Transformers that read whole long documents.")
    top.add_argument("--version", action="version", version=f"longspan {__version__}")
    verbs = top.add_subparsers(metavar="command", required=True, parser_class=Verb)
    for name in VERBS:
        import_module(f"longspan.cli.{name}").add_to(verbs)
    return top
