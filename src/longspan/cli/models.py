"""`longspan models`: the built-in model and the others in the cache folder."""

import argparse
import json
from pathlib import Path
from typing import Any


def add_to(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser("models", help="list the models in the cache folder")
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(run=run)


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
