"""`longspan models`: the built-in model and those that were lengthened or pulled into the cache folder."""

import argparse
import json
from typing import Any


def add_to(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser("models", help="list the models in the cache folder")
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print name, size and folder of each model."""
    from longspan.builtin import NAME, cached, pulled

    found: list[dict[str, Any]] = [
        {"name": folder.name, "bytes": size, "folder": str(folder), "default": folder == pulled()}
        for folder, size in cached()
    ]
    if arguments.json:
        print(json.dumps(found))
        return 0
    for model in found:
        star = "*" if model["default"] else " "
        print(f"{star} {model['name']}\t{model['bytes'] / 1e6:.0f} MB\t{model['folder']}")
    if pulled() is None:
        print(f"  {NAME}\tnot here yet: `longspan pull` fetches it")
    return 0
