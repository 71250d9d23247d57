"""A run in a process of its own: `python -m unit.training.working FOLDER [JSON]` prints its weights' digest.

{"steps": ...} takes fewer steps of the schedule at once: the process ends itself after so many.
"""

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from longspan.nn.layers import Layers
from longspan.training.checkpoint import Saving
from longspan.training.evaluation import Evaluation, mean_loss
from longspan.training.loop import train
from longspan.training.optimizer import AdamW
from longspan.training.source import Loss
from unit.training.small import Rows, Small, squares

DATA = Rows(31)


class Stacked(nn.Module):
    """The small model behind a stack of layers, which may be shared layer by layer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = Layers([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.small = Small(dropout=0.0)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        y: Tensor = self.small(x)
        return y


def main(folder: Path, given: dict[str, Any]) -> None:
    """Train, and print the sum of all weights and a digest of their bits."""
    torch.set_num_threads(1)
    dies = given.pop("dies", None)
    model = Stacked() if given.pop("stacked", False) else Small()
    done = 0

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Loss:
        nonlocal done
        done += model.training
        if done == dies:
            os._exit(9)
        return squares(model, batch)

    options: dict[str, Any] = {"epochs": 8, "batch_size": 6, "micro_tokens": 12, "progress": False}
    options |= {"optimizer": AdamW(lr=1e-2), "saving": Saving(minutes=0)} | given
    evaluation = Evaluation(run=mean_loss(Rows(7), squares), every=5)
    train(model, DATA, loss, out=folder, evaluation=evaluation, **options)
    weights = list(model.parameters())
    digest = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in weights)).hexdigest()
    if os.environ.get("RANK", "0") == "0":
        total = [float(p.detach().double().abs().sum()) for p in weights]
        print(json.dumps({"digest": digest, "sums": total}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]) if len(sys.argv) > 2 else {})
