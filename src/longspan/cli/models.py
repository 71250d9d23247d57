"""`longspan pull [MODEL]`: fetch a model, to work offline; `longspan models`: list those in the cache."""

import argparse
import json
from pathlib import Path
from typing import Any

from longspan.cli.parsing import Verb


def add_to(verbs: "argparse._SubParsersAction[Verb]") -> None:
    """Declare the verbs."""
    pulling = verbs.add_parser(
        "pull",
        help="fetch a model, to work offline afterwards",
        examples=["longspan pull", "longspan pull org/model"],
    )
    meaning = "a name on the hub (default: the built-in model)"
    pulling.add_argument("model", nargs="?", default="default", metavar="MODEL", help=meaning)
    pulling.set_defaults(run=pull)
    verb = verbs.add_parser(
        "models",
        help="list the models in the cache folder",
        description="List the models in the cache folder; --model takes each by its name.",
        examples=["longspan models", "longspan models --json"],
    )
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(run=run)


def pull(arguments: argparse.Namespace) -> int:
    """Print the folder of the model."""
    from longspan.builtin import ensure
    from longspan.hub import resolve

    ensure(arguments.model, thorough=True)
    print(resolve(arguments.model))
    return 0


def run(arguments: argparse.Namespace) -> int:
    """Print name, size and folder of each model."""
    from longspan.builtin import NAME
    from longspan.hub import builtin_folder, cached_models

    default = builtin_folder()
    models: list[dict[str, Any]] = [
        {"name": folder.name, "bytes": _size(folder), "folder": str(folder), "default": folder == default}
        for folder in cached_models()
    ]
    if arguments.json:
        print(json.dumps(models))
        return 0
    for model in models:
        star = "*" if model["default"] else " "
        print(f"{star} {model['name']}\t{model['bytes'] / 1e6:.0f} MB\t{model['folder']}")
    if default is None:
        print(f"  {NAME}\tnot here yet: `longspan pull` fetches it")
    return 0


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
