"""Options that several verbs share, and checks of what they name before work begins."""

import argparse
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from longspan.errors import bad

if TYPE_CHECKING:
    from longspan.text.documents import Limits

MODEL = "a folder, a name that `longspan models` lists, or a name on the hub"
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]?)(i?B|i)?", re.IGNORECASE)


def add_model(verb: argparse.ArgumentParser) -> None:
    """Declare --model, whose default is the built-in model."""
    help_ = f"{MODEL} (default: the built-in model)"
    verb.add_argument("--model", metavar="MODEL", default="default", help=help_)


def add_adapter(verb: argparse.ArgumentParser) -> None:
    """Declare --adapter."""
    help_ = "the one that is merged into the model, where its files hold several"
    verb.add_argument("--adapter", metavar="NAME", help=help_)


def add_ocr(verb: argparse.ArgumentParser) -> None:
    """Declare --ocr."""
    verb.add_argument("--ocr", action="store_true", help="read scanned pages and pictures by tesseract")


def add_limits(verb: argparse.ArgumentParser, *, at_once: bool = False) -> None:
    """Declare what one file may cost; a model that reads a text `at_once` takes shorter ones."""
    group = verb.add_argument_group("limits", "A file that needs more is not read.")
    option, most = group.add_argument, "16 Mi" if at_once else "256 Mi"
    option("--max-file-size", type=size, metavar="SIZE", help="size of a file (default: 256 MiB)")
    option("--max-characters", type=size, metavar="N", help=f"length of its text (default: {most})")
    option(
        "--max-parse-seconds",
        type=seconds,
        metavar="S",
        help="time to parse it, and a second more for each megabyte (default: 8)",
    )
    option("--max-parse-memory", type=size, metavar="SIZE", help="memory to parse it (default: 1 GiB)")


def limits_of(arguments: argparse.Namespace, *, at_once: bool = False) -> "Limits":
    """The limits that the options ask for; a model that reads a text `at_once` takes shorter ones."""
    from longspan.text.documents import DEFAULT, WHOLE

    given = {
        "bytes": arguments.max_file_size,
        "characters": arguments.max_characters,
        "seconds": arguments.max_parse_seconds,
        "memory": arguments.max_parse_memory,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    return replace(WHOLE if at_once else DEFAULT, **changes)


def size(text: str) -> int:
    """A number of bytes or characters, as people write it.

    >>> size("2000"), size("1.5 kB"), size("2M"), size("1 GiB")
    (2000, 1500, 2097152, 1073741824)
    """
    found = _SIZE.fullmatch(text.strip())
    if found:
        base = 1000 if (found[3] or "").upper() == "B" and found[2] else 1024
        count = int(float(found[1]) * base ** " KMGT".index(found[2].upper() or " "))
        if 1 <= count <= 1 << 48:
            return count
    raise argparse.ArgumentTypeError(f"must be a size such as 500MB, 2GiB or 1000000, but is {text!r}")


def seconds(text: str) -> float:
    """A time above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, but is {text!r}")
    return value


def count(text: str) -> int:
    """A whole number from 1."""
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:10]) <= 2**30 - 1 or len(text) > 10:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1, but is {text!r}")
    return int(text)


def check_file(option: str, path: Path) -> Path:
    """A path that a file can be written to, with ~ expanded; to be called before the work begins."""
    path = path.expanduser()
    if path.is_dir():
        raise bad(option, "a file, not a folder", str(path))
    if path.is_fifo() and not path.is_relative_to(
        "/dev"
    ):  # would wait for a reader, forever if there is none
        raise bad(option, "a file, not a named pipe", str(path), "Write to /dev/stdout to use a pipe.")
    if not path.absolute().parent.is_dir():
        raise bad(option, "a file in a folder that exists", str(path), f"Make {path.parent} first.")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise bad(option, "a file that you may write", str(path))
    return path


def check_folder(option: str, path: Path) -> Path:
    """A path that a folder can be made at, or that is one, with ~ expanded."""
    path = path.expanduser()
    nearest = next(place for place in (path.absolute(), *path.absolute().parents) if place.exists())
    if not nearest.is_dir():
        raise bad(option, "a folder, or a place for one", str(path), f"{nearest} is a file.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise bad(option, "a folder that you may write to", str(path))
    return path


def check_paths(name: str, paths: list[str]) -> None:
    """Refuse a path that does not exist."""
    for path in paths:
        if not os.path.exists(os.path.expanduser(path)):
            raise bad(name, "a file or folder that exists", path)


def check_model(name: str) -> Path:
    """The folder of a model, fetched if need be; to be called before anything is read for it."""
    from longspan.builtin import ensure
    from longspan.cli.terminal import detail
    from longspan.hub import resolve

    ensure(name)
    folder = resolve(name)
    detail(f"model {name}: {folder}")
    return folder


def settings(texts: list[str]) -> list[tuple[str, str]]:
    """What NAME=VALUE options say, by name."""
    pairs = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise bad("--set", "NAME=VALUE", text)
        pairs.append((name.strip(), value.strip()))
    return pairs


def setting(text: str) -> int | float | str | bool | tuple[int, ...]:
    """A whole number, several with commas between, a fraction, true or false, or a word.

    >>> setting("256"), setting("1,2"), setting("7,"), setting("2.5"), setting("true"), setting("mean")
    (256, (1, 2), (7,), 2.5, True, 'mean')
    """
    if text in ("true", "false"):
        return text == "true"
    try:
        numbers = tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        return float(text) if re.fullmatch(r"\d{1,20}\.\d{1,20}", text, re.ASCII) else text
    return numbers[0] if len(numbers) == 1 and "," not in text else numbers
