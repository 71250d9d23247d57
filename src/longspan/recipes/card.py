"""The model card of a trained model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from longspan._version import __version__

SHOWN = ("length", "packing", "frozen", "cpc", "batch_tokens", "dtype", "seed")


def card(settings: Mapping[str, Any], report: Mapping[str, Any], command: str) -> str:
    """What was trained, on how much, by which settings and command, and how good it is."""
    name, training, masking = Path(report["folder"]).name, report["training"], settings["masking"]
    rows = [
        ("source", f"`{Path(str(settings['source'])).name}`"),
        ("corpus", f"{settings['corpus']['tokens']:,} tokens"),
        ("training", f"{training['steps']:,} steps, {training['tokens']:,} tokens"),
        ("masking", f"{masking['rate']:.0%} of {masking['unit']}s"),
        *((label, str(settings[label])) for label in SHOWN),
        *(
            (f"{label.replace('_', ' ')}, held out", f"{value:.4f}, before {report['before'][label]:.4f}")
            for label, value in report["after"].items()
            if label in report["before"]
        ),
        ("made with", f"longspan {__version__}, torch {torch.__version__}"),
    ]
    lines = ["---", "library_name: longspan", "pipeline_tag: fill-mask", "tags: [longspan]", "---", ""]
    lines += [f"# {name}", "", "A masked language model.", "", "| | |", "|---|---|"]
    lines += [f"| {label} | {text} |" for label, text in rows]
    if command:
        lines += ["", "Made by:", "", "```sh", command, "```"]
    lines += ["", "Read by:", "", "```python", "import longspan", "", 'reader = longspan.load("this folder")']
    return "\n".join([*lines, "```", ""])
