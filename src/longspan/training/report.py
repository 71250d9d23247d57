"""What a run is going to do, told before its first step, and what it has done."""

import math
from dataclasses import dataclass, field
from pathlib import Path

from longspan.training.order import Order


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """What is known before the first step; time and memory are those of a micro-batch that was tried."""

    examples: int
    tokens: int
    "Of all steps together."
    steps: int
    done: int
    "Steps of an earlier call."
    batch_tokens: int
    "Of a step, on average."
    processes: int
    parameters: int
    trainable: int
    seconds: float
    "From now on, without evaluations."
    memory: int
    "Bytes of a process at its highest in the trial, and what its optimizer is going to keep."

    def __str__(self) -> str:
        again = f", of which {self.done:,} are done" if self.done else ""
        share = "" if self.trainable == self.parameters else f", {self.trainable:,} of them trained"
        many = f", {self.processes} processes" if self.processes > 1 else ""
        return (
            f"{self.examples:,} examples, {self.tokens:,} tokens in {self.steps:,} steps of about "
            f"{self.batch_tokens:,}{again}{many}\n"
            f"{self.parameters:,} weights{share}; about {self.memory / 1e9:.1f} GB, {duration(self.seconds)}"
        )


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a run has done."""

    folder: Path
    steps: int
    epochs: float
    tokens: int
    seconds: float
    loss: float | None
    "The mean of the last steps."
    metrics: dict[str, float] = field(default_factory=dict)
    "The evaluation of the weights that the model has now: the best."
    best_step: int | None = None
    stopped_early: bool = False
    skipped: int = 0
    "Steps without an update, as their loss was no number."

    def to_dict(self) -> dict[str, object]:
        """As JSON has it."""
        return {**vars(self), "folder": str(self.folder)}

    def __str__(self) -> str:
        rate = f"{self.tokens / self.seconds:,.0f} tokens/s" if self.seconds else ""
        lines = [f"{self.steps:,} steps, {self.tokens:,} tokens in {duration(self.seconds)} ({rate})"]
        if self.loss is not None:
            lines.append(f"training loss {self.loss:.4g}")
        if self.metrics:
            figures = ", ".join(f"{name} {value:.4g}" for name, value in self.metrics.items())
            lines.append(
                f"best at step {self.best_step:,}: {figures}" + ", stopped early" * self.stopped_early
            )
        if self.skipped:
            lines.append(f"{self.skipped} steps were skipped: their loss was no number")
        return "\n".join(lines)


def expected_tokens(order: Order, steps: int, epochs: int | None) -> int:
    """The tokens of all steps."""
    total = int(order.lengths.sum())
    if epochs is not None:
        return total * epochs
    return math.ceil(total * steps / max(1, order.count_steps(1)))


def duration(seconds: float) -> str:
    """
    >>> duration(7325)
    '2 h 2 min'
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min"
