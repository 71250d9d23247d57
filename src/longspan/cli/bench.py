"""`longspan bench attention`, `model` and `search`: time Longspan and its peers in turn."""

import argparse
from pathlib import Path
from typing import Any

from longspan.errors import bad


def add_to(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser("bench", help="measure speed and memory against the peers")
    subjects = verb.add_subparsers(metavar="subject", required=True)
    attention = subjects.add_parser("attention", help="the attention engine")
    _add_common(attention)
    attention.add_argument("--flex", action="store_true", help="compile FlexAttention too (about 40 s)")
    attention.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw time and memory against length instead"
    )
    attention.set_defaults(run=run_attention)
    model = subjects.add_parser("model", help="whole models of base size, reading, writing and learning")
    _add_common(model)
    model.set_defaults(run=run_model)
    search = subjects.add_parser("search", help="the built-in model: encoding, queries, start, updates")
    _add_common(search)
    search.add_argument(
        "--text", type=Path, metavar="DIR", help="what to read (default: examples/, else made-up text)"
    )
    search.set_defaults(run=run_search)


def _add_common(subject: argparse.ArgumentParser) -> None:
    subject.add_argument("cases", nargs="*", metavar="CASE", help="cases to run (default: all)")
    subject.add_argument("--short", action="store_true", help="a small table in under a minute")
    subject.add_argument("--rounds", type=int, metavar="N", help="rounds per case")
    subject.add_argument("--threads", type=int, default=2, metavar="N", help="threads (default: 2)")
    subject.add_argument("--json", type=Path, metavar="FILE", help="save every figure")


def _common(arguments: argparse.Namespace) -> dict[str, Any]:
    """What every benchmark is told."""
    names = ("short", "rounds", "threads", "json")
    return {name: getattr(arguments, name) for name in names} | {"names": arguments.cases}


def run_attention(arguments: argparse.Namespace) -> int:
    """Hand the options to the benchmark of the engine."""
    if arguments.short and (arguments.cases or arguments.json or arguments.plot):
        raise bad("--short", "given without cases, --json and --plot", True, "It only prints a table.")
    from longspan.bench import attention

    attention.run(**_common(arguments), flex=arguments.flex, plot=arguments.plot)
    return 0


def run_model(arguments: argparse.Namespace) -> int:
    """Hand the options to the benchmark of whole models."""
    if arguments.short and (arguments.cases or arguments.json):
        raise bad("--short", "given without cases and --json", True, "It only prints a table.")
    from longspan.bench import model

    model.run(**_common(arguments))
    return 0


def run_search(arguments: argparse.Namespace) -> int:
    """Hand the options to the benchmark of search."""
    from longspan.bench import search

    search.run(**_common(arguments), text=arguments.text)
    return 0
