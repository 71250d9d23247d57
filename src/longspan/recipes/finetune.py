"""Fine-tuning: a Reader and labeled texts in, a better Reader out."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack, cast

import numpy as np
from torch import Tensor, nn

from longspan.checkpoints.lora import LoraOptions
from longspan.errors import bad, number
from longspan.families.task_model import TaskModel
from longspan.formats.atomic import write_text
from longspan.nn.lora import lora_layers
from longspan.pipeline.packing import Batch
from longspan.reader import Reader
from longspan.recipes.card import page, this_command, training_rows
from longspan.shuffled import shuffled
from longspan.tasks.batches import Examples
from longspan.tasks.class_weights import ClassWeights
from longspan.tasks.class_weights import class_weights as weights_of
from longspan.tasks.registry import TASKS
from longspan.training.checkpoint import Saving
from longspan.training.config import TrainingOptions
from longspan.training.evaluation import Evaluation, Metrics, mean_loss
from longspan.training.groups import freeze as make_frozen
from longspan.training.loop import train
from longspan.training.ranks import is_first
from longspan.training.report import Report
from longspan.training.source import Loss
from longspan.training.step import drawing

log = logging.getLogger("longspan")
RUN = "run"
"""The folder of the run, inside of the model's."""
ADAPTER = "adapter"
"""And that of what was trained beside its weights."""
EPOCHS, BATCH_SIZE = 3, 32

Columns = list[list[object]]
"""The inputs of a task, and last their labels."""


@dataclass(frozen=True)
class TaskLoss:
    """The loss of a task with options."""

    summed: Callable[..., Loss]
    options: Mapping[str, Tensor]

    def __call__(self, model: nn.Module, batch: Batch) -> Loss:
        return self.summed(model, batch, **self.options)

    @property
    def digest(self) -> dict[str, object]:
        """The options."""
        return {name: value.tolist() for name, value in self.options.items()}


def finetune(
    reader: Reader,
    *inputs: Iterable[object],
    labels: Iterable[object],
    out: str | Path,
    validation: Sequence[Iterable[object]] | float | None = None,
    metric: str = "loss",
    eval_every: float = 0.1,
    patience: int | None = None,
    class_weights: ClassWeights | None = None,
    freeze: Iterable[str] = (),
    lora: LoraOptions | None = None,
    saving: Saving | None = None,
    fsdp: bool = False,
    tensorboard: bool = False,
    progress: bool | None = None,
    **options: Unpack[TrainingOptions],
) -> Report:
    """Train a Reader for its task and write it to `out`, a folder that longspan.load and transformers read.

    `inputs` and `labels` are those of Reader.prepare: texts and their classes to classify, say. `validation`
    is a tuple of other inputs and their labels, or the share of these that is held back. It is evaluated
    before the first step, at the end, and on the way after each share `eval_every` of the steps; the weights
    best by `metric` are kept, and after `patience` evaluations without better ones the run ends. `freeze`
    names weights that stay as they are; with `lora`, the options of Reader.add_lora, all do but changes of
    low rank and the head, which out/adapter holds alone, for peft. `options` are the fields of
    TrainingConfig; without them there are 3 epochs in steps of 32 texts by AdamW with a learning rate of
    3e-5, a warm-up and a linear decay. The run lives in out/run: called again, it goes on.
    """
    task, given = TASKS[reader.task], [list(column) for column in (*inputs, labels)]
    given, held = _split(given, validation, options.get("seed", 0))
    data = _examples(reader, given)
    loss = TaskLoss(task.loss_sum, _weights(class_weights, reader, data))
    _adapt(reader, lora, options.get("seed", 0))
    make_frozen(reader.model, list(freeze))
    evaluation = None
    if held is not None:
        run = _evaluator(reader, held, loss, options.get("micro_tokens", 8192))
        evaluation = Evaluation(run=run, every=eval_every, metric=metric, patience=patience)
    _complete(options)
    folder = Path(out).expanduser().absolute()
    report = train(
        reader.model,
        data,
        loss,
        out=folder / RUN,
        evaluation=evaluation,
        saving=saving,
        fsdp=fsdp,
        tensorboard=tensorboard,
        progress=progress,
        **options,
    )
    if is_first():
        reader.save(folder)
        if lora_layers(reader.model):
            reader.save_adapter(folder / ADAPTER)
        write_text(folder / "README.md", _card(reader, len(given[0]), report))
    return report


def _complete(options: TrainingOptions) -> None:
    """Say how long and in what steps, where the user does not."""
    if options.get("steps") is None and options.get("epochs") is None:
        options["epochs"] = EPOCHS
    if options.get("batch_tokens") is None and options.get("batch_size") is None:
        options["batch_size"] = BATCH_SIZE


def _adapt(reader: Reader, lora: LoraOptions | None, seed: int) -> None:
    """Give the model an adapter if it is to have one, the same each time."""
    if lora is not None and not lora_layers(reader.model):
        with drawing(seed):
            reader.add_lora(**lora)


def _weights(wanted: ClassWeights | None, reader: Reader, data: Examples) -> dict[str, Tensor]:
    """What the loss takes to weigh classes, if that is wanted."""
    if wanted is None:
        return {}
    if not TASKS[reader.task].has_labels:
        raise bad("class_weights", "None for a task without classes", wanted)
    batches = (data.batch(np.array([number])).labels for number in range(len(data.lengths)))
    found = [labels for labels in batches if isinstance(labels, Tensor)]
    return {"class_weights": weights_of(wanted, reader.labels, found)}


def _split(
    given: Columns, validation: Sequence[Iterable[object]] | float | None, seed: int
) -> tuple[Columns, Columns | None]:
    """What is trained on, and what is held back, if anything is."""
    count = len(given[-1])
    if validation is None:
        return given, None
    if isinstance(validation, float | int):
        held = round(number("validation", validation, 0, 1) * count)
        if not 0 < held < count:
            raise bad("validation", f"a share that leaves some of the {count} examples", validation)
        order = shuffled(np.arange(count), count, (seed, 0)).tolist()
        return [[column[i] for i in sorted(order[held:])] for column in given], [
            [column[i] for i in sorted(order[:held])] for column in given
        ]
    columns = [list(column) for column in validation]
    if len(columns) != len(given):
        raise bad(
            "validation", f"{len(given) - 1} lists of inputs and one of labels", f"{len(columns)} lists"
        )
    return given, columns


def _examples(reader: Reader, columns: Columns) -> Examples:
    return reader.examples(*columns[:-1], labels=columns[-1])


def _evaluator(
    reader: Reader, held: Columns, loss: Callable[[nn.Module, Batch], Loss], micro_tokens: int
) -> Callable[[nn.Module], Metrics]:
    """The loss of what is held back and, where the task has one, its measure."""
    task, mean = TASKS[reader.task], mean_loss(_examples(reader, held), loss, micro_tokens=micro_tokens)

    other = copy(reader)  # which speaks for the model as it is trained

    def run(model: nn.Module) -> Metrics:
        metrics = dict(mean(model))
        if task.judge is not None:
            other.model = cast(TaskModel, model)
            with _quiet():  # what is cut was told when the examples were made
                found = cast(list[object], other(*held[:-1], progress=False))
            metrics |= task.judge(found, held[-1], reader.labels, reader.problem)
        return metrics

    return run


@contextmanager
def _quiet() -> Iterator[None]:
    """Inside the block nothing is told but errors."""
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def _card(reader: Reader, count: int, report: Report) -> str:
    task = TASKS[reader.task]
    rows = [("task", task.name), ("examples", f"{count:,}"), *training_rows(report)]
    about = f"A model to {task.name}, fine-tuned with Longspan."
    return page(report.folder.parent.name, about, rows, tag=task.aliases[0], command=this_command())
