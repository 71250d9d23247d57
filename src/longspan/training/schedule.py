"""How the learning rate changes: a factor for each step, by the step's number alone."""

import math
from dataclasses import dataclass
from typing import Protocol

from longspan.errors import bad


class Schedule(Protocol):
    """(step, steps) to a factor of the learning rate; the first step is 0."""

    @property
    def warmup(self) -> float:
        """Steps in which the rate rises; below 1 a share of all."""
        ...

    def factor(self, step: int, steps: int) -> float:
        """What the learning rate is multiplied by at a step of so many."""
        ...


@dataclass(frozen=True)
class Constant:
    """The full rate after the warm-up, of so many steps or, below 1, such a share of all.

    >>> [Constant(warmup=2).factor(step, 9) for step in range(4)]
    [0.5, 1.0, 1.0, 1.0]
    """

    warmup: float = 0.0

    def __post_init__(self) -> None:
        _check(self.warmup)

    def factor(self, step: int, steps: int) -> float:
        """What the learning rate is multiplied by at a step of so many."""
        warm, _ = _progress(self.warmup, step, steps)
        return warm


@dataclass(frozen=True)
class Linear:
    """Down to a share `end` of the rate along a straight line.

    >>> [round(Linear(0, end=0.1).factor(step, 4), 3) for step in range(5)]
    [1.0, 0.775, 0.55, 0.325, 0.1]
    """

    warmup: float = 0.1
    end: float = 0.0

    def __post_init__(self) -> None:
        _check(self.warmup)

    def factor(self, step: int, steps: int) -> float:
        """What the learning rate is multiplied by at a step of so many."""
        warm, done = _progress(self.warmup, step, steps)
        return warm * (self.end + (1 - self.end) * (1 - done))


@dataclass(frozen=True)
class Cosine:
    """Down to a share `end` along half a cosine."""

    warmup: float = 0.1
    end: float = 0.0

    def __post_init__(self) -> None:
        _check(self.warmup)

    def factor(self, step: int, steps: int) -> float:
        """What the learning rate is multiplied by at a step of so many."""
        warm, done = _progress(self.warmup, step, steps)
        return warm * (self.end + (1 - self.end) * (1 + math.cos(math.pi * done)) / 2)


@dataclass(frozen=True)
class Polynomial:
    """Down to a share `end` by a power of what is left."""

    warmup: float = 0.1
    end: float = 0.0
    power: float = 3.0

    def __post_init__(self) -> None:
        _check(self.warmup)

    def factor(self, step: int, steps: int) -> float:
        """What the learning rate is multiplied by at a step of so many."""
        warm, done = _progress(self.warmup, step, steps)
        return warm * (self.end + (1 - self.end) * math.pow(1 - done, self.power))


SCHEDULES = {"constant": Constant, "linear": Linear, "cosine": Cosine, "polynomial": Polynomial}
"""By the names that transformers has for them."""


def _check(warmup: float) -> None:
    if not 0 <= warmup < math.inf:
        raise bad("warmup", "a number of steps, or a share of them below 1", warmup)


def _progress(warmup: float, step: int, steps: int) -> tuple[float, float]:
    """How warm it is, up to 1, and how much is done of what follows the warm-up."""
    cold = int(warmup) if warmup >= 1 else math.ceil(warmup * steps)
    if step < cold:
        return (step + 1) / cold, 0.0
    return 1.0, min(1.0, (step - cold) / max(1, steps - cold))
