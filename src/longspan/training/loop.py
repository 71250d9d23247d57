"""The training loop: one for every recipe."""

import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Unpack

from torch import nn

from longspan.formats.atomic import as_json, locked, write_text
from longspan.training.checkpoint import Saving
from longspan.training.config import TrainingOptions, config_of
from longspan.training.evaluation import Evaluation
from longspan.training.interrupt import watching
from longspan.training.log import RunLog, read_log
from longspan.training.memory import peak
from longspan.training.picture import curve
from longspan.training.ranks import Ranks, connected, gather, sharded
from longspan.training.report import Report, RunPlan, expected_tokens
from longspan.training.run import Run
from longspan.training.source import LossFunction, Source, T


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
        trained = sharded(model) if fsdp else model
        stack.callback(model.train, model.training)
        run = Run(trained, data, loss, config, folder, evaluation, saving or Saving())
        run.begin()
        if not run.state.finished:
            signals = stack.enter_context(watching())
            plan = planned(run)
            if group.first:
                run.records = RunLog(folder, run.state.step, tensorboard=tensorboard)
                stack.callback(run.records.close)
                write_text(folder / "plan.json", as_json(vars(plan)))
                if progress is not False:
                    print(plan, file=sys.stderr)
            came = run.go(signals, progress, plan.tokens)
        if came is None:
            report = reported(run)
            if fsdp:
                gather(trained, model)
    if came is not None:
        signal.raise_signal(came)  # to whoever it was meant for, now that nothing can be lost
        raise KeyboardInterrupt
    return report


def planned(run: Run[T]) -> RunPlan:
    """What is ahead of a run; its largest micro-batch is tried once, so that it fails now if it does."""
    examples = run.order.step(run.state.cursor)
    sizes = [int(run.order.lengths[batch].sum()) for batch in examples.batches]
    largest = max(range(len(sizes)), key=sizes.__getitem__)
    tried = examples._replace(batches=[examples.batches[largest]] * run.group.count)
    run.model.train()
    began = time.monotonic()
    run.stepper.gradients(run.state.step, tried)
    seconds = (time.monotonic() - began) / sizes[largest] / run.group.count
    run.weights.forget_gradients()
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
