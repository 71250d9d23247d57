"""How good a model is while it is trained, which of its weights are the best, and when to stop."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from longspan.errors import bad, whole
from longspan.training.order import Cursor, Order
from longspan.training.ranks import Ranks
from longspan.training.source import LossFunction, Source, T, on_device

Metrics = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What is measured during a run, before its first step and after its last one, too."""

    run: Callable[[nn.Module], Metrics]
    "Figures of the model as it is now; in evaluation mode, without gradients. All processes call it."
    every: float = 0.1
    "Steps between two evaluations; below 1 a share of all steps."
    metric: str = "loss"
    "The figure by which the best weights are chosen."
    greater_is_better: bool | None = None
    "None: no for a loss, a perplexity and bits, else yes."
    patience: int | None = None
    "Stop after so many evaluations without a better one; None: never."

    def __post_init__(self) -> None:
        if not 0 < self.every < math.inf:
            raise bad("every", "a number of steps, or a share of them below 1", self.every)
        if self.patience is not None:
            whole("patience", self.patience, 1)

    def is_due(self, step: int, steps: int) -> bool:
        """Whether to evaluate when so many steps are done."""
        every = max(1, round(self.every if self.every >= 1 else self.every * steps))
        return step % every == 0 or step == steps

    def is_better(self, new: Metrics, old: Metrics) -> bool:
        """Whether one evaluation is better than another; the first is better than none."""
        if self.metric not in new:
            raise bad("metric", f"one of {', '.join(new)}", self.metric)
        value = new[self.metric]
        if not old or math.isnan(old[self.metric]):
            return not math.isnan(value)
        return value > old[self.metric] if self._greater else value < old[self.metric]

    @property
    def _greater(self) -> bool:
        small = any(word in self.metric for word in ("loss", "perplexity", "bits", "error"))
        return not small if self.greater_is_better is None else self.greater_is_better


def mean_loss(
    data: Source[T], loss: LossFunction[T], *, micro_tokens: int = 8192
) -> Callable[[nn.Module], Metrics]:
    """An evaluation: the loss over all examples, each read as in epoch 0; processes share them."""
    order = Order(data.lengths, batch_size=len(data.lengths), micro_tokens=micro_tokens)

    def run(model: nn.Module) -> Metrics:
        group = Ranks.of(model)
        batches = order.step(Cursor(0, 0)).batches
        total = weight = 0.0
        with torch.no_grad():
            for number, counts in group.share(len(batches)):
                part = loss(model, on_device(data.batch(batches[number], 0), model))
                if counts:
                    total, weight = total + float(part.total), weight + part.weight
        total, weight = group.sum([total, weight])
        return {"loss": total / weight if weight else math.nan}

    return run
