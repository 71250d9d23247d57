"""`longspan lengthen`: make a short encoder read long documents."""

import argparse
import json
from pathlib import Path
from typing import Any

from longspan.cli.options import MODEL, check_folder, count, setting, settings
from longspan.cli.parsing import Verb
from longspan.errors import missing

SOURCES = MODEL
LENGTHS = "tokens to read (default: 4096, with a decoder 16384, with rotary positions 4 times as many)"


def add_to(verbs: "argparse._SubParsersAction[Verb]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser(
        "lengthen",
        help="make a short encoder read long documents",
        examples=[
            "longspan lengthen FacebookAI/roberta-base --to 4096 --radius 256 --out roberta-4096",
            "longspan lengthen ./my-model --radius 128",
            "longspan lengthen ./my-rotary-model --to 32768 --set scaling=dynamic --out my-model-32k",
            "longspan lengthen --options",
        ],
    )
    verb.add_argument("source", nargs="?", metavar="SOURCE", help=SOURCES)
    verb.add_argument("--to", type=count, metavar="N", help=LENGTHS)
    verb.add_argument("--out", type=Path, metavar="DIR", help="where to write it (default: only compare)")
    verb.add_argument(
        "--pattern", help="the kind of long model (default: longformer; rope for rotary positions)"
    )
    verb.add_argument("--radius", metavar="N", help="tokens seen on each side; or one number for each layer")
    verb.add_argument("--block", metavar="N", help="tokens of a block")
    verb.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="another option of the pattern"
    )
    verb.add_argument("--options", action="store_true", help="list the patterns and their options")
    verb.add_argument("--sif", action="store_true", help="the same as --set sif_weights=shipped")
    verb.add_argument("--positions", default="copy", help="copy (default), interpolate or random")
    verb.add_argument("--period", type=count, metavar="N", help="copy the first N positions only")
    verb.add_argument("--task", help="what it shall do (default: what the source does)")
    verb.add_argument("--force", action="store_true", help="replace a model that is there")
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Lengthen it and print the report."""
    if arguments.options:
        return _list_options()
    if arguments.source is None:
        raise missing("SOURCE", SOURCES, "--options lists what each pattern takes.")
    options: dict[str, Any] = {name: setting(text) for name, text in _pairs(arguments)}
    if arguments.sif:
        options["sif_weights"] = "shipped"
    if arguments.out is not None:
        arguments.out = check_folder("--out", arguments.out)
    from longspan.lengthening.lengthen import lengthen

    names = ("out", "pattern", "positions", "period", "task", "force")
    options |= {name: getattr(arguments, name) for name in names}
    report = lengthen(arguments.source, arguments.to, **options)
    print(json.dumps(report.as_json(), indent=1) if arguments.json else report)
    return 0


def _list_options() -> int:
    from longspan.families.registry import lengthenings

    for kind in lengthenings().values():
        print(kind.name)
        for name, text in kind.options.items():
            print(f"  {name:16}{text}")
    return 0


def _pairs(arguments: argparse.Namespace) -> list[tuple[str, str]]:
    """The options of the pattern, by name."""
    pairs = [(name, getattr(arguments, name)) for name in ("radius", "block") if getattr(arguments, name)]
    return pairs + settings(arguments.set)
