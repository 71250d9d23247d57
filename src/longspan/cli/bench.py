"""`longspan bench attention`: time Longspan and its peers in turn."""

import argparse
from pathlib import Path

from longspan.errors import bad


def add_to(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser("bench", help="measure speed and memory against the peers")
    subjects = verb.add_subparsers(metavar="subject", required=True)
    attention = subjects.add_parser("attention", help="the attention engine")
    attention.add_argument("cases", nargs="*", metavar="CASE", help="cases to run (default: all)")
    attention.add_argument("--short", action="store_true", help="a small table in under a minute")
    attention.add_argument("--rounds", type=int, metavar="N", help="rounds per case")
    attention.add_argument("--threads", type=int, default=2, metavar="N", help="threads (default: 2)")
    attention.add_argument("--flex", action="store_true", help="compile FlexAttention too (about 40 s)")
    attention.add_argument("--json", type=Path, metavar="FILE", help="save every figure")
    attention.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw time and memory against length instead"
    )
    attention.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Hand the options to the benchmark."""
    if arguments.short and (arguments.cases or arguments.json or arguments.plot):
        raise bad("--short", "given without cases, --json and --plot", True, "It only prints a table.")
    from longspan.bench import attention

    attention.run(
        short=arguments.short,
        names=arguments.cases,
        rounds=arguments.rounds,
        threads=arguments.threads,
        flex=arguments.flex,
        json=arguments.json,
        plot=arguments.plot,
    )
    return 0
