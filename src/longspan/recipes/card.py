"""The model card of a trained model."""

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

import torch

from longspan._version import __version__
from longspan.training.report import Report, duration

READ_BY = "python", 'import longspan\n\nreader = longspan.load("this folder")'
"""How most models are used: the language and the lines."""


def page(
    title: str,
    about: str,
    rows: Iterable[tuple[str, str]],
    *,
    tag: str,
    command: str | None,
    read_by: tuple[str, str] = READ_BY,
) -> str:
    """README.md: what a model is, a table of facts, the command that made it, and how it is used."""
    made = ("made with", f"longspan {__version__}, torch {torch.__version__}")
    lines = ["---", "library_name: longspan", f"pipeline_tag: {tag}", "tags: [longspan]", "---", ""]
    lines += [f"# {title}", "", about, "", "| | |", "|---|---|"]
    lines += [f"| {label} | {text} |" for label, text in (*rows, made)]
    if command:
        lines += ["", "Made by:", "", "```sh", command, "```"]
    language, use = read_by
    return "\n".join([*lines, "", "Read by:", "", f"```{language}", use, "```", ""])


def training_rows(report: Report) -> list[tuple[str, str]]:
    """The facts of a run."""
    rows = [
        ("training", f"{report.steps:,} steps, {report.tokens:,} tokens, {duration(report.seconds)}"),
        *((f"{name}, held out", f"{value:.4g}") for name, value in report.metrics.items()),
    ]
    return rows + ([("stopped", "early")] if report.stopped_early else [])


def this_command() -> str:
    """The command that is running."""
    program = Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"
    return shlex.join([program, *sys.argv[1:]])
