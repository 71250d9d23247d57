"""`longspan bench attention`, `model`, `search` and `load`: time Longspan and its peers in turn."""

import argparse
from importlib import import_module
from pathlib import Path

from longspan.cli.options import check_file, count
from longspan.cli.parsing import Verb
from longspan.errors import bad

SUBJECTS = {
    "attention": "the attention engine",
    "model": "whole models of base size, reading, writing and learning",
    "load": "a short model beside busy threads, against ONNX Runtime",
    "search": "the built-in model: encoding, queries, start, updates",
}


def add_to(verbs: "argparse._SubParsersAction[Verb]") -> None:
    """Declare the verb."""
    verb = verbs.add_parser(
        "bench",
        help="measure speed and memory against the peers",
        examples=["longspan bench attention --short", "longspan bench search --json search.json"],
    )
    parsers = verb.add_subparsers(metavar="SUBJECT", required=True)
    subjects = {
        name: parsers.add_parser(name, help=text, examples=[f"longspan bench {name} --short"])
        for name, text in SUBJECTS.items()
    }
    for name, subject in subjects.items():
        subject.add_argument("names", nargs="*", metavar="CASE", help="cases to run (default: all)")
        subject.add_argument("--short", action="store_true", help="a small table in under a minute")
        subject.add_argument("--rounds", type=count, metavar="N", help="rounds per case")
        subject.add_argument("--threads", type=count, default=2, metavar="N", help="threads (default: 2)")
        subject.add_argument("--json", type=Path, metavar="FILE", help="save every figure")
        subject.set_defaults(run=run, subject=name)
    attention = subjects["attention"]
    attention.add_argument("--flex", action="store_true", help="compile FlexAttention too (about 40 s)")
    chart = "draw time and memory against length instead"
    attention.add_argument("--plot", type=Path, metavar="FILE", help=chart)
    text = "what to read (default: examples/, else made-up text)"
    subjects["search"].add_argument("--text", type=Path, metavar="DIR", help=text)


def run(arguments: argparse.Namespace) -> int:
    """Hand the options to the benchmark of the subject."""
    for option in ("json", "plot"):
        if path := getattr(arguments, option, None):
            setattr(arguments, option, check_file(f"--{option}", path))
    if getattr(arguments, "text", None) and not arguments.text.expanduser().is_dir():
        raise bad("--text", "a folder that exists", str(arguments.text))
    ours = ("run", "subject", "quiet", "verbose")
    options = {name: value for name, value in vars(arguments).items() if name not in ours}
    extras = {"attention": ["names", "json", "plot"], "model": ["names", "json"]}.get(arguments.subject, [])
    if arguments.short and any(options[name] for name in extras):
        listed = "cases, --json and --plot" if "plot" in extras else "cases and --json"
        raise bad("--short", f"given without {listed}", True, "It only prints a table.")
    if getattr(arguments, "plot", None) and arguments.names:
        raise bad("--plot", "given without cases", str(arguments.plot), "It draws time against length.")
    import_module(f"longspan.bench.{arguments.subject}").run(**options)
    return 0
