"""Two processes that differ: `torchrun --nproc-per-node 2 -m unit.training.together FOLDER`.

Each process does its share of some runs, one after the other, and writes down what became of them.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from longspan.training import checkpoint
from longspan.training.checkpoint import Saving
from longspan.training.evaluation import Evaluation
from longspan.training.loop import train
from longspan.training.step import NotANumber
from unit.training.small import Rows, Small, squares

RANK = int(os.environ.get("RANK", "0"))
OPTIONS: dict[str, Any] = {"batch_size": 8, "micro_tokens": 13, "progress": False}


class Sided(Small):
    """A model with a bias that only one process reaches, and one that none does."""

    def __init__(self) -> None:
        super().__init__(dropout=0.0)
        self.one, self.none = (nn.Parameter(torch.ones(1)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + (self.one if RANK else 0.0)


def judged(folder: Path) -> int | None:
    """The best step of a run whose processes measure otherwise."""
    values = iter([3.0, 2.0, 2.0, 2.0])

    def run(model: nn.Module) -> dict[str, float]:
        return {"loss": next(values) - 1e-9 * RANK * torch.rand(()).item()}

    torch.manual_seed(RANK)
    evaluation = Evaluation(run=run, every=1)
    return train(Small(), Rows(), squares, out=folder, steps=3, evaluation=evaluation, **OPTIONS).best_step


def broken(folder: Path) -> list[str]:
    """The errors of runs in which one process computes what is no number."""
    errors = []
    for example in (8, 19):  # of different micro-batches of the first step
        try:
            train(Small(), Rows(broken=(example,)), squares, out=folder / str(example), steps=9, **OPTIONS)
        except NotANumber as error:
            errors.append(str(error).split(".")[0])
    return errors


def sided(folder: Path) -> list[float]:
    """What becomes of the weights that one process reaches, and none."""
    model = Sided()
    train(model, Rows(), squares, out=folder, steps=3, **OPTIONS)
    return [model.one.item(), model.none.item()]


def rolled_back(folder: Path) -> int:
    """The steps of a run that is rolled back, whose first process is ahead with its checkpoints."""
    options = OPTIONS | {"on_nan": "rollback", "saving": Saving(minutes=0)}
    real = checkpoint.newest

    def mine(folder: Path) -> Path | None:
        assert not RANK, "only the first process looks for a checkpoint"
        return real(folder)

    checkpoint.newest = mine
    return train(Small(), Rows(broken=(12,)), squares, out=folder, epochs=2, **options).steps


def main(folder: Path) -> None:
    """Do all of them."""
    torch.set_num_threads(1)
    found = {part.__name__: part(folder / part.__name__) for part in (judged, broken, sided, rolled_back)}
    (folder / f"{RANK}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
