"""The model card of a trained model."""

import os
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
    """The command that is running, as a user would type it."""
    program, spec = Path(sys.argv[0] if sys.argv else ""), getattr(sys.modules["__main__"], "__spec__", None)
    module = spec.name.removesuffix(".__main__") if spec else ""
    run = ["-m", module] if module else [program.name] if program.name else []
    if "TORCHELASTIC_RUN_ID" in os.environ:
        words = ["torchrun", *_processes(), *run]
    elif module == "longspan" or program.name == "longspan":
        words = ["longspan"]
    else:
        words = ["python", *run]
    return shlex.join([*words, *sys.argv[1:]])


def _processes() -> list[str]:
    """How many `torchrun` started."""
    nodes, here = (os.environ.get(name, "1") for name in ("GROUP_WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    return [*(["--nnodes", nodes] if nodes != "1" else []), "--nproc-per-node", here]
