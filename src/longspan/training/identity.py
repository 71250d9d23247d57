"""What may not change when a run goes on: its settings, its data, and the weights that it began with."""

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from longspan.errors import bad
from longspan.formats.atomic import as_json, write_text
from longspan.formats.files import read_json
from longspan.training.config import TrainingConfig
from longspan.training.evaluation import Evaluation
from longspan.training.source import Source

RUN, LEFT = "run.json", "left.json"
FREE = ("micro_tokens", "gradient_checkpointing")
"""Settings that another machine may need otherwise: they change the bits of a run, not what it computes."""
SUMS = {
    "lengths": "examples of the same lengths",
    "model": "the same shapes of weights, of which the same are trained",
    "data": "the same data and labels",
    "loss": "the same options of the loss",
    "weights": "the same weights at its beginning",
}
"""What is known by a checksum, as errors call it."""


def identity_of(
    config: TrainingConfig, data: Source[Any], loss: object, evaluation: Evaluation | None, model: nn.Module
) -> dict[str, Any]:
    """What a run is, as JSON has it. Data and a loss may have a `digest`, which tells them from others."""
    shapes = {name: (list(p.shape), p.requires_grad) for name, p in model.named_parameters()}
    chosen = None if evaluation is None else [evaluation.every, evaluation.metric, evaluation.patience]
    found = {
        **config.to_dict(),
        "evaluation": chosen,
        "examples": len(data.lengths),
        "lengths": zlib.crc32(data.lengths.astype("<i8").tobytes()),
        "model": zlib.crc32(repr(shapes).encode()),
        "data": getattr(data, "digest", None),
        "loss": getattr(loss, "digest", None),
        "weights": checksum(model),
    }
    plain: dict[str, Any] = json.loads(json.dumps(found))
    return plain


def checksum(model: nn.Module) -> int:
    """A sum over the bits of all parameters: 0.1 s for 150 million of them."""
    total = 0
    for p in model.parameters():
        whole = p.detach().cpu().contiguous().flatten()
        total = zlib.crc32(whole.view(torch.uint8).numpy().data, total)
    return total


def claim(folder: Path, own: Mapping[str, Any], *, first: bool, begun: bool) -> None:
    """Note in a new folder what the run is; one of another run is refused.

    A model may also come as the last call has left it, if the run has `begun`: its checkpoint is taken then.
    """
    known, left = folder / RUN, folder / LEFT
    if not known.is_file():
        if first:
            write_text(known, as_json(own))
        return
    before = read_json(known)
    if begun and left.is_file() and own["weights"] == read_json(left).get("weights"):
        before["weights"] = own["weights"]
    for name in (*own, *before):
        if name in FREE or before.get(name) == own.get(name):
            continue
        if name in SUMS:
            repair = "Give what it was begun with (a model that was trained since: load it again), "
            raise bad("out", f"that of a run with {SUMS[name]}", str(folder), f"{repair}or another folder.")
        repair = "Use the same settings to go on, or another folder."
        raise bad("out", f"that of a run whose `{name}` is {own.get(name)!r}", before.get(name), repair)


def leave(folder: Path, model: nn.Module) -> None:
    """Note the weights that a call leaves in the model, so that the next one knows them."""
    write_text(folder / LEFT, as_json({"weights": checksum(model)}))
