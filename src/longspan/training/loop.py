"""The training loop: one for every recipe."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Unpack

import torch
from torch import nn

from longspan.formats.atomic import as_json, locked, write_text
from longspan.nn.layers import stacks
from longspan.training.checkpoint import Saving
from longspan.training.config import TrainingOptions, config_of
from longspan.training.evaluation import Evaluation
from longspan.training.identity import identity_of, leave
from longspan.training.interrupt import Interrupted, watching
from longspan.training.log import RunLog, read_log
from longspan.training.memory import forget_peak, peak
from longspan.training.order import StepExamples
from longspan.training.picture import curve
from longspan.training.ranks import Ranks, connected, gathered, shard
from longspan.training.report import Report, RunPlan, expected_tokens
from longspan.training.run import Run
from longspan.training.source import LossFunction, Source, T
from longspan.training.weights import Weights


def train(
    model: nn.Module,
    data: Source[T],
    loss: LossFunction[T],
    *,
    out: str | Path,
    evaluation: Evaluation | None = None,
    saving: Saving | None = None,
    fsdp: bool = False,
    tensorboard: bool = False,
    progress: bool | None = None,
    **options: Unpack[TrainingOptions],
) -> Report:
    """Train a model, which has the best weights afterwards; `options` are the fields of TrainingConfig.

    `out` is the folder of the run. Called again with the same settings it goes on where it was, however it
    was stopped, and ends with the same bits; a finished run only gives its weights. Started by `torchrun`,
    processes share each step, and with `fsdp` the weights, too. Ctrl-C and SIGTERM write a checkpoint first.
    """
    config, folder = config_of(options), Path(out).expanduser().absolute()
    came = None
    with ExitStack() as stack:
        stack.enter_context(connected())
        group = Ranks.of(model)
        if group.first:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder, "is being trained in by another process"))
        group.agree(model)
        stack.enter_context(as_before(model))
        trained = deepcopy(model) if fsdp or config.dtype != "float32" else model
        if config.dtype != "float32":
            trained.to(getattr(torch, config.dtype))
        if fsdp:
            shard(trained)
        for layers in stacks(trained):
            layers.gradient_checkpointing |= config.gradient_checkpointing
        weights = Weights(trained, config, model)
        run = Run(trained, data, loss, config, folder, evaluation, saving or Saving(), weights)
        run.begin(identity_of(config, data, loss, evaluation, model))
        if not run.state.finished:
            came = carried_out(run, tensorboard, progress)
        if came is None:
            report = reported(run)
            if trained is not model:
                hand_over(run.weights, model)
        if group.first:
            leave(folder, model)
    if came is not None:
        signal.raise_signal(came)  # to whoever it was meant for, now that nothing can be lost
        raise KeyboardInterrupt
    return report


def carried_out(run: Run[T], tensorboard: bool, progress: bool | None) -> int | None:
    """Take the steps that are left; the number of a signal that came, if one did."""
    try:
        with ExitStack() as stack:
            signals = stack.enter_context(watching())
            with run.together(signals):
                plan = planned(run)
                if run.group.first:
                    state = run.state
                    run.records = RunLog(run.out, state.step, state.evaluated, tensorboard=tensorboard)
                    stack.callback(run.records.close)
                    write_text(run.out / "plan.json", as_json(vars(plan)))
                    if progress is not False:
                        print(plan, file=sys.stderr)
            return run.go(signals, progress, plan.tokens)
    except Interrupted as stop:  # before the first step
        return stop.number


@contextmanager
def as_before(model: nn.Module) -> Iterator[None]:
    """After the block the model is in the mode it was in, and keeps what it kept for backward passes."""
    training, kept = model.training, [layers.gradient_checkpointing for layers in stacks(model)]
    try:
        yield
    finally:
        model.train(training)
        for layers, before in zip(stacks(model), kept, strict=True):
            layers.gradient_checkpointing = before


@torch.no_grad()
def hand_over(weights: Weights, model: nn.Module) -> None:
    """Give a model the weights of the copy that was trained, as exactly as they are known."""
    for name, p in model.named_parameters():
        if name in weights.changed:
            p.copy_(gathered(weights.changed[name]))


def planned(run: Run[T]) -> RunPlan:
    """What is ahead of a run; its largest micro-batch is tried, so that what does not fit fails now."""
    largest = run.order.largest()
    size = int(run.order.lengths[largest].sum())
    tried = StepExamples(0, [largest] * run.group.count, size, run.state.cursor)
    run.model.train()
    forget_peak()
    began = time.monotonic()
    try:
        run.stepper.gradients(run.state.step, tried)
    finally:
        run.weights.forget_gradients()
    seconds = (time.monotonic() - began) / size / run.group.count
    tokens = expected_tokens(run.order, run.steps, run.config.epochs)
    return RunPlan(
        examples=len(run.order.lengths),
        tokens=tokens,
        steps=run.steps,
        done=run.state.step,
        batch_tokens=round(tokens / run.steps),
        processes=run.group.count,
        parameters=sum(p.numel() for p in run.model.parameters()),
        trainable=sum(p.numel() for p in run.weights.named.values()),
        seconds=seconds * max(0, tokens - run.state.tokens),
        memory=peak() + run.weights.state_bytes(),
    )


def reported(run: Run[T]) -> Report:
    """What a finished run has done; it has the best weights afterwards, and its curve is drawn."""
    state = run.state
    run.take_best()
    report = Report(
        folder=run.out,
        steps=state.step,
        epochs=state.epoch + state.position / len(run.order.lengths),
        tokens=state.tokens,
        seconds=state.seconds,
        loss=state.loss,
        metrics=state.best,
        best_step=state.best_step if state.best else None,
        stopped_early=state.step < run.steps,
        skipped=state.skipped,
    )
    if run.group.first:
        metric = "loss" if run.evaluation is None else run.evaluation.metric
        write_text(run.out / "loss.svg", curve(read_log(run.out), metric, run.out.name))
        write_text(run.out / "report.json", as_json(report.to_dict()))
    return report
