"""`longspan pull [MODEL]`: fetch a model once, to work offline afterwards."""

import argparse


def add_to(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser("pull", help="fetch a model, to work offline afterwards")
    verb.add_argument(
        "model", nargs="?", default="default", metavar="MODEL", help="default: the built-in model"
    )
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the folder of the model."""
    from longspan.builtin import ensure
    from longspan.hub import resolve

    ensure(arguments.model)
    print(resolve(arguments.model))
    return 0
