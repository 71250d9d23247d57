"""The model card of a pretrained model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longspan.recipes.card import page

SHOWN = ("length", "packing", "frozen", "cpc", "batch_tokens", "dtype", "seed")


def card(settings: Mapping[str, Any], report: Mapping[str, Any], command: str) -> str:
    """What was trained, on how much, by which settings and command, and how good it is."""
    training, masking = report["training"], settings["masking"]
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
    ]
    name = Path(report["folder"]).name
    return page(name, "A masked language model.", rows, tag="fill-mask", command=command)
