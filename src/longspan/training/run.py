"""One run: where it is, what it changes, and how it goes on after whatever has stopped it."""

import logging
import math
import signal
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

import torch
from torch import Tensor, nn

from longspan.errors import refused
from longspan.formats.atomic import as_json, write_text
from longspan.formats.files import read_json
from longspan.progress import Progress, progress_bar
from longspan.training import checkpoint
from longspan.training.checkpoint import RunState, Saving
from longspan.training.config import TrainingConfig
from longspan.training.ema import EMA
from longspan.training.evaluation import Evaluation
from longspan.training.identity import claim
from longspan.training.interrupt import Interrupted, Signals
from longspan.training.log import EVALUATION, RunLog
from longspan.training.order import Order, StepExamples
from longspan.training.ranks import Ranks, computed, gathered, shared
from longspan.training.source import LossFunction, Source, T
from longspan.training.step import Stepper, drawing, not_a_number
from longspan.training.weights import Weights

CHECKPOINTS, SKIPPED = "checkpoints", "skipped.json"
MOST_SKIPPED = 20
"""Steps in a row without a number, after which something else is wrong."""
SMOOTH = 0.95
"""What the mean loss keeps of earlier steps."""
log = logging.getLogger("longspan")


@dataclass(eq=False)
class Run(Generic[T]):
    """A model that is trained in a folder."""

    model: nn.Module
    data: Source[T]
    loss: LossFunction[T]
    config: TrainingConfig
    out: Path
    evaluation: Evaluation | None
    saving: Saving
    weights: Weights
    state: RunState = field(default_factory=RunState)
    records: RunLog | None = None
    "Where it writes down how it goes, if it is the first process."

    def __post_init__(self) -> None:
        config = self.config
        self.group = Ranks.of(self.model)
        self.order = Order(
            self.data.lengths, config.batch_tokens, config.batch_size, config.micro_tokens, config.seed
        )
        self.steps = config.steps or self.order.count_steps(config.epochs or 1)
        self.ema = None if config.ema is None else EMA(config.ema, self.weights.changed)
        self.stepper = Stepper(self.model, self.data, self.loss, self.group, self.weights, config.seed)
        self._saved = time.monotonic()
        self._odd_in_a_row = 0

    def begin(self, identity: Mapping[str, Any]) -> None:
        """Go on with the newest checkpoint, if there is one, of the same run."""
        path = self._newest()
        claim(self.out, identity, first=self.group.first, begun=path is not None)
        if path is not None:
            self._restore(path)
        elif self.config.on_nan == "rollback":
            self.save()
        self.group.wait()

    def go(self, signals: Signals, progress: bool | None, tokens: int) -> int | None:
        """Take all steps that are left; the number of a signal that came, if one did."""
        shown, done = progress if self.group.first else False, min(tokens, self.state.tokens)
        with (
            self.together(signals),
            progress_bar(tokens, "tokens", done=done, shown=shown, scale=True) as bar,
        ):
            try:
                self._go(signals, bar)
                with signals.held():
                    self.state.finished = True
                    self.save()
            except Interrupted:
                self.weights.give_back()
                self.weights.forget_gradients()
                self.save()
            (came,) = self.group.sum([float(signals.came is not None)])
            return signals.came or signal.SIGTERM if came else None

    def together(self, signals: Signals) -> AbstractContextManager[None]:
        """Several processes hold signals inside the block: they tell each other, to stop at the same step."""
        return nullcontext() if self.group.count == 1 else signals.held()

    def _go(self, signals: Signals, bar: Progress) -> None:
        self.model.train()
        while True:
            signals.check()
            if self.evaluation is not None and self._evaluated(self.evaluation, signals):
                return
            if self.state.step >= self.steps:
                return
            before = self.state.tokens
            self._step(self.order.step(self.state.cursor), signals)
            bar.update(self.state.tokens - before)  # less than nothing after a rollback
            if self.state.loss is not None:
                bar.status(f"loss {self.state.loss:.4g}")

    def _step(self, examples: StepExamples, signals: Signals) -> None:
        state, config, began = self.state, self.config, time.monotonic()
        if [state.epoch, state.position] in self._skipped():
            with signals.held():
                self._advance(examples, began)
            return
        late = self.group.first and began - self._saved > 60 * self.saving.minutes
        got = self.stepper.gradients(state.step, examples, float(signals.came is not None), float(late))
        self.weights.sum_gradients(self.group)
        norm = self.weights.norm() / got.weight if got.weight else 0.0
        if not math.isfinite(got.mean) or not math.isfinite(norm):
            with signals.held():
                self._pass_over(examples, got.wrong, began)
            return
        most, rate = config.max_grad_norm, config.schedule.factor(state.step, self.steps)
        factor = 1.0 if most is None or norm <= most else most / norm
        stop, save = got.signals
        with signals.held():
            if got.weight:
                self.weights.update(factor / got.weight, rate)
                if self.ema is not None:
                    self.ema.update()
            self.weights.forget_gradients()
            self._odd_in_a_row = 0
            self._advance(examples, began, got.mean)
            lr = config.optimizer.lr * rate
            self._record(loss=got.mean, lr=lr, grad_norm=norm, seconds=round(state.seconds, 3))
            if save:
                self.save()
        if stop:
            signals.stop()

    def _advance(self, examples: StepExamples, began: float, loss: float | None = None) -> None:
        state = self.state
        state.step, state.tokens = state.step + 1, state.tokens + examples.tokens
        state.epoch, state.position = examples.after
        state.seconds += time.monotonic() - began
        if loss is not None:
            keep = min(SMOOTH, 1 - 1 / state.step)
            state.loss = loss if state.loss is None else keep * state.loss + (1 - keep) * loss

    def _pass_over(self, examples: StepExamples, wrong: list[list[int]], began: float) -> None:
        """Do without a step whose loss is no number, or raise the error that names its batch."""
        self.weights.forget_gradients()
        error = not_a_number(self.state.step, examples, wrong)
        self._odd_in_a_row += 1
        if self.config.on_nan == "stop" or self._odd_in_a_row > MOST_SKIPPED:
            raise error
        log.warning("%s It is left out.", str(error).split(" Look at")[0])
        if self.config.on_nan == "rollback":
            place = [self.state.epoch, self.state.position]
            if self.group.first:
                write_text(self.out / SKIPPED, as_json({"steps": [*self._skipped(), place]}))
            self.group.wait()
            path = self._newest()
            if path is None:
                raise error
            self._restore(path)
            if self.records is not None:
                self.records.rewind(self.state.step, self.state.evaluated)
            return
        self.state.skipped += 1
        self._advance(examples, began)

    def _skipped(self) -> list[list[int]]:
        """Where steps begin that are left out."""
        path = self.out / SKIPPED
        if self.config.on_nan != "rollback" or not path.is_file():
            return []
        steps = read_json(path).get("steps")
        if not isinstance(steps, list):
            raise refused(path, "it is no list of steps")
        return steps

    def _evaluated(self, evaluation: Evaluation, signals: Signals) -> bool:
        """Evaluate if it is time to, and tell whether that ends the run."""
        state = self.state
        if evaluation.is_due(state.step, self.steps) and state.evaluated != state.step:
            metrics = self._metrics(evaluation)
            better = evaluation.is_better(metrics, state.best)
            with signals.held():
                state.evaluated = state.step
                state.stale = 0 if better else state.stale + 1
                self._record(**{f"{EVALUATION}{name}": value for name, value in metrics.items()})
                if better:
                    state.best, state.best_step = metrics, state.step
                    self.save()
        return evaluation.patience is not None and state.stale >= evaluation.patience

    def _metrics(self, evaluation: Evaluation) -> dict[str, float]:
        """Those of the first process, as all must judge alike."""
        self.model.eval()
        averaged = nullcontext() if self.ema is None else self.weights.taken(self.ema.average)
        try:
            with torch.no_grad(), averaged, drawing(self.config.seed, self.state.step):
                found = computed(evaluation.run, self.model)
        finally:
            self.model.train()
        values = self.group.told([float(value) for value in found.values()])
        return dict(zip(found, values, strict=True))

    def save(self) -> None:
        """Write a checkpoint, and remove those that are not kept."""
        tensors: dict[str, Mapping[str, Tensor]] = {**self.weights.state()}
        if self.ema is not None:
            tensors["ema"] = self.ema.average
        whole: dict[str, dict[str, Tensor]] = {file: {} for file in tensors}
        for file, group in tensors.items():
            for name, value in group.items():
                one = gathered(value)
                if self.group.first:  # the others forget it at once
                    whole[file][name] = one
        if self.group.first:
            folder = self.out / CHECKPOINTS
            checkpoint.save(folder, self.state, whole)
            checkpoint.prune(folder, self.saving.keep, self.state.best_step)
        self.group.wait()
        self._saved = time.monotonic()

    def take_best(self) -> None:
        """Give the model the weights of the best evaluation, or the last ones; averages if it has them."""
        path = checkpoint.path_of(self.out / CHECKPOINTS, self.state.best_step)
        if self.evaluation is not None and path.is_dir() and self.state.best_step != self.state.step:
            state = self.state
            self._restore(path)
            self.state = state
        if self.ema is not None:
            self.weights.put(self.ema.average)

    def _restore(self, path: Path) -> None:
        self.state, tensors = checkpoint.load(path)
        self.weights.restore(tensors, path)
        if self.ema is not None:
            stored, own = tensors.get("ema", {}), self.ema.average
            whole = {
                name: shared(value, own[name]) if name in own else value for name, value in stored.items()
            }
            self.ema.restore(whole, path)

    def _newest(self) -> Path | None:
        """The newest checkpoint, that of the first process in all."""
        path = checkpoint.newest(self.out / CHECKPOINTS) if self.group.first else None
        (step,) = self.group.told([-1.0 if path is None else checkpoint.step_of(path)])
        return None if step < 0 else checkpoint.path_of(self.out / CHECKPOINTS, int(step))

    def _record(self, **values: Any) -> None:
        if self.records is not None:
            state = self.state
            self.records.write({"step": state.step, "epoch": state.epoch, "tokens": state.tokens, **values})
