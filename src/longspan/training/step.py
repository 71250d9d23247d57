"""The gradients of one step: micro-batches forward and backward, shared by all processes."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, NamedTuple

import numpy as np
import torch
from torch import nn

from longspan.errors import LongspanError
from longspan.training.order import StepExamples
from longspan.training.ranks import Ranks, computed
from longspan.training.source import LossFunction, Source, T, on_device
from longspan.training.weights import Weights


class StepLoss(NamedTuple):
    """What the micro-batches of a step gave, all processes together."""

    mean: float
    weight: float
    signals: list[float]
    "Sums of what the processes said beside it."
    wrong: list[list[int]]
    "Examples of the micro-batches whose loss is no number."


class NotANumber(LongspanError, ArithmeticError):
    """A loss or a gradient that is no number."""


@contextmanager
def drawing(*key: int) -> Iterator[None]:
    """torch's random numbers inside the block depend on a key alone, and are as before afterwards."""
    seed = int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0])
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


@dataclass(frozen=True)
class Stepper(Generic[T]):
    """What computes the gradients of a step."""

    model: nn.Module
    data: Source[T]
    loss: LossFunction[T]
    group: Ranks
    weights: Weights
    seed: int

    def gradients(self, step: int, examples: StepExamples, *signals: float) -> StepLoss:
        """Add the gradients of the summed loss of this process to those that the weights have.

        `signals` are summed over the processes on the way.
        """
        total, weight, wrong = 0.0, 0.0, []
        for number, counts in self.group.share(len(examples.batches)):
            chosen = examples.batches[number]
            with drawing(self.seed, step, number):
                batch = on_device(self.data.batch(chosen, examples.epoch), self.model)
                part = computed(self.loss, self.model, batch)
                (part.total if counts else part.total * 0).backward()
            self.weights.collect()
            if counts:
                value = float(part.total.detach())
                total, weight = total + value, weight + part.weight
                if not math.isfinite(value):
                    wrong.append(chosen.tolist())
        total, weight, *sums = self.group.sum([total, weight, *signals])
        if not math.isfinite(total):
            wrong = self.group.joined(wrong)
        return StepLoss(total / weight if weight else 0.0, weight, sums, wrong)


def not_a_number(step: int, examples: StepExamples, wrong: list[list[int]]) -> NotANumber:
    """The error that names the batch."""
    many = [number for batch in wrong or examples.batches for number in batch]
    numbers = ", ".join(map(str, many[:20])) + (" ..." if len(many) > 20 else "")
    what = "loss" if wrong else "gradient"
    return NotANumber(
        f"The {what} of step {step} is no number: epoch {examples.epoch}, examples {numbers}. Look at these "
        f"examples, lower the learning rate, or let such steps be left out: on_nan='skip' or 'rollback'."
    )
