"""`longspan eval char-lm DIR --data FILE`: how many bits a language model needs for a character."""

import argparse
import json
import time
from pathlib import Path

from longspan.cli.options import count, size
from longspan.cli.parsing import Verb
from longspan.cli.terminal import is_quiet
from longspan.errors import bad


def add_to(subjects: "argparse._SubParsersAction[Verb]") -> None:
    """Declare the subject."""
    verb = subjects.add_parser(
        "char-lm",
        help="bits per character of a language model of bytes",
        examples=[
            "longspan eval char-lm run --data enwik8.gz",
            "longspan eval char-lm run --data enwik8.gz --split test --characters 1MB --json",
        ],
    )
    option = verb.add_argument
    option("model", metavar="DIR", help="what `longspan train char-lm` made")
    option(
        "--data", type=Path, required=True, metavar="FILE", help="a text (.gz, .xz, .zip), or a DIR of splits"
    )
    option("--split", choices=("train", "valid", "test"), default="test", help="(default: test)")
    option("--characters", type=size, metavar="N", help="only so many of the first, such as 1MB")
    option("--length", type=count, default=32_256, metavar="N", help="of a window (default: 32256)")
    option("--step", type=count, default=512, metavar="N", help="scored at its end (default: 512)")
    option("--json", action="store_true", help="print JSON")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the bits per character."""
    if arguments.step > arguments.length:
        raise bad("--step", f"at most --length, {arguments.length}", arguments.step)
    from longspan.recipes.char_lm.bits import bits_of
    from longspan.recipes.char_lm.load import load_char_lm
    from longspan.recipes.char_lm.texts import open_splits

    model, (text,) = load_char_lm(arguments.model), open_splits(arguments.data, arguments.split)
    began, text = time.monotonic(), text[: arguments.characters]
    progress = False if is_quiet() else None
    found = bits_of(model, text, length=arguments.length, step=arguments.step, progress=progress)
    if arguments.json:
        result = {"model": arguments.model, "data": str(arguments.data), "split": arguments.split}
        result |= {"bits_per_character": found.per_character, "characters": found.characters}
        result |= {"length": arguments.length, "step": arguments.step}
        print(json.dumps(result | {"seconds": time.monotonic() - began}))
    else:
        where = f"{found.characters:,} characters of {arguments.data.name}, {arguments.split}"
        print(f"{found.per_character:.4f} bits per character ({where})")
    return 0
