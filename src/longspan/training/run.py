"""One run: where it is, what it changes, and how it goes on after whatever has stopped it."""

import json
import logging
import math
import time
import zlib
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic

import torch
from torch import Tensor, nn

from longspan.errors import bad, refused
from longspan.formats.atomic import as_json, write_text
from longspan.formats.files import read_json
from longspan.progress import Progress, progress_bar
from longspan.training import checkpoint
from longspan.training.checkpoint import RunState, Saving
from longspan.training.config import TrainingConfig
from longspan.training.ema import EMA
from longspan.training.evaluation import Evaluation
from longspan.training.interrupt import Interrupted, Signals
from longspan.training.log import RunLog
from longspan.training.order import Order, StepExamples
from longspan.training.ranks import Ranks, gathered
from longspan.training.source import LossFunction, Source, T
from longspan.training.step import Stepper, drawing, not_a_number
from longspan.training.weights import Weights

RUN, CHECKPOINTS, SKIPPED = "run.json", "checkpoints", "skipped.json"
MOST_SKIPPED = 20
"""Steps in a row without a number, after which something else is wrong."""
SMOOTH = 0.95
"""What the mean loss keeps of earlier steps."""
FREE = ("micro_tokens", "gradient_checkpointing")
"""Settings that another machine may need otherwise: they change the bits of a run, not what it computes."""
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
        self.stepper = Stepper(self.model, self.data, self.loss, self.group, config.seed)
        self._saved = time.monotonic()
        self._odd_in_a_row = 0

    def begin(self) -> None:
        """Go on with the newest checkpoint, if there is one, of a run with the same settings."""
        known, here = self.out / RUN, json.loads(json.dumps(self._identity()))
        if known.is_file():
            before = read_json(known)
            for name in (*here, *before):
                if name not in FREE and before.get(name) != here.get(name):
                    what = f"that of a run whose `{name}` is {here.get(name)!r}"
                    repair = "Use the same settings to go on, or another folder."
                    raise bad("out", what, before.get(name), repair)
        elif self.group.first:
            write_text(known, as_json(here))
        path = checkpoint.newest(self.out / CHECKPOINTS)
        if path is not None:
            self._restore(path)
        elif self.config.on_nan == "rollback":
            self.save()
        self.group.wait()

    def go(self, signals: Signals, progress: bool | None, tokens: int) -> int | None:
        """Take all steps that are left; the number of a signal that came, if one did."""
        alone = self.group.count == 1
        with progress_bar(tokens, "tokens", shown=progress and self.group.first, scale=True) as bar:
            bar.update(self.state.tokens)
            try:
                # Several processes must stop at the same step: they tell each other of a signal.
                with nullcontext() if alone else signals.held():
                    self._go(signals, bar)
            except Interrupted as stop:
                with signals.held():
                    self.weights.forget_gradients()
                    self.save()
                return stop.number
        with signals.held():
            self.state.finished = True
            self.save()
        return None

    def _go(self, signals: Signals, bar: Progress) -> None:
        self.model.train()
        while True:
            if self.evaluation is not None and self._evaluated(self.evaluation, signals):
                return
            if self.state.step >= self.steps:
                return
            self._step(self.order.step(self.state.cursor), signals, bar)

    def _step(self, examples: StepExamples, signals: Signals, bar: Progress) -> None:
        state, config, began = self.state, self.config, time.monotonic()
        if [state.epoch, state.position] in self._skipped():
            self._advance(examples, began)
            return
        late = self.group.first and began - self._saved > 60 * self.saving.minutes
        got = self.stepper.gradients(state.step, examples, float(signals.came is not None), float(late))
        self.group.sum_gradients(self.weights.gradients)
        norm = self.weights.norm() / got.weight if got.weight else 0.0
        if not math.isfinite(got.mean) or not math.isfinite(norm):
            self._pass_over(examples, got.wrong, began)
            return
        most, rate = config.max_grad_norm, config.schedule.factor(state.step, self.steps)
        factor = 1.0 if most is None or norm <= most else most / norm
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
        bar.update(examples.tokens)
        bar.status(f"loss {state.loss:.4g}")
        stop, save = got.signals
        if save:
            with signals.held():
                self.save()
        if stop:
            raise Interrupted(signals.came or 15)
        if self.group.count == 1:
            signals.check()

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
            path = checkpoint.newest(self.out / CHECKPOINTS)
            if path is None:
                raise error
            self._restore(path)
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
                if better:
                    state.best, state.best_step = metrics, state.step
                    self.save()
            self._record(**{f"eval/{name}": value for name, value in metrics.items()})
        return evaluation.patience is not None and state.stale > evaluation.patience

    def _metrics(self, evaluation: Evaluation) -> dict[str, float]:
        self.model.eval()
        averaged = nullcontext() if self.ema is None else self.weights.taken(self.ema.average)
        try:
            with torch.no_grad(), averaged, drawing(self.config.seed, self.state.step):
                return {name: float(value) for name, value in evaluation.run(self.model).items()}
        finally:
            self.model.train()

    def save(self) -> None:
        """Write a checkpoint, and remove those that are not kept."""
        tensors: dict[str, Mapping[str, Tensor]] = {**self.weights.state()}
        if self.ema is not None:
            tensors["ema"] = self.ema.average
        whole = {
            file: {name: gathered(value) for name, value in group.items()} for file, group in tensors.items()
        }
        if self.group.first:
            folder = self.out / CHECKPOINTS
            checkpoint.save(folder, self.state, whole)
            checkpoint.prune(folder, self.saving.keep, self.state.best_step)
        self.group.wait()
        self._saved = time.monotonic()

    def take_best(self) -> None:
        """Give the model the weights of the best evaluation, or the last ones; averages if it has them."""
        path = self.out / CHECKPOINTS / f"step-{self.state.best_step:08d}"
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
            self.ema.restore(tensors.get("ema", {}), path)

    def _record(self, **values: Any) -> None:
        if self.records is not None:
            state = self.state
            self.records.write({"step": state.step, "epoch": state.epoch, "tokens": state.tokens, **values})

    def _identity(self) -> dict[str, Any]:
        """What may not change when the run goes on."""
        lengths, evaluation = self.data.lengths, self.evaluation
        shapes = {name: list(p.shape) for name, p in self.model.named_parameters()}
        chosen = None if evaluation is None else [evaluation.every, evaluation.metric, evaluation.patience]
        return {
            **self.config.to_dict(),
            "examples": len(lengths),
            "lengths": zlib.crc32(lengths.astype("<i8").tobytes()),
            "model": zlib.crc32(repr((shapes, [*self.weights.named])).encode()),
            "evaluation": chosen,
        }
