"""The command `longspan`: one verb per file, nothing heavy imported before a verb runs."""

import argparse
import os
import sys
from collections.abc import Sequence

from longspan import __version__
from longspan.cli import bench, doctor, patterns
from longspan.errors import InputError, LongspanError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0 is success, 1 a failure, 2 a mistake in what was asked, told in one line."""
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
        print(f"longspan: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    return status


def parser() -> argparse.ArgumentParser:
    """All verbs and their options."""
    top = argparse.ArgumentParser(prog="longspan", description="Transformers that read whole long documents.")
    top.add_argument("--version", action="version", version=f"longspan {__version__}")
    verbs = top.add_subparsers(metavar="command", required=True)
    for verb in (doctor, patterns, bench):
        verb.add_to(verbs)
    return top
