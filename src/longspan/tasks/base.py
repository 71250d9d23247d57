"""What a task is, as data."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor

from longspan.datasets.form import Form
from longspan.errors import InputError, bad
from longspan.families.base import ModelConfig
from longspan.families.padded import PaddedLoss, no_loss
from longspan.families.task_model import TaskModel
from longspan.pipeline.documents import Reading, ReadingRules
from longspan.pipeline.inputs import Inputs
from longspan.pipeline.labels import Labeling, with_table
from longspan.pipeline.packing import Batch
from longspan.tasks.losses import Loss
from longspan.text.encoding import Encoding
from longspan.text.tokenizer import Tokenizer


def no_run(*inputs: object, **options: object) -> object:
    """What a task without a verb and without `run` does."""
    raise NotImplementedError("Give the Task a `run`, or Reader a verb of its name.")


def plain(tokenizer: Tokenizer, inputs: Inputs, prompt: str) -> list[Encoding]:
    """The tokens of each input as it stands."""
    return tokenizer.encode_many(inputs.items)


def no_targets(given: Labeling) -> list[Any]:
    """What a task does that says nothing of labels."""
    raise bad("labels", "None for a task without `targets`", "given", "Give the Task a function for them.")


def no_loss_sum(model: TaskModel, batch: Batch) -> Loss:
    """What a task does that cannot be trained on batches with labels."""
    raise bad("task", "one with a `loss_sum`", "without", "Give the Task a function for it.")


Judge = Callable[[Sequence[Any], Sequence[Any], Sequence[str], str | None], dict[str, float]]
"""(results, labels, the names of the classes, the kind of problem) to measures by name."""


class Ranking(NamedTuple):
    """How models of a task score a query with a document."""

    scores: Callable[
        [Any, Inputs, Mapping[str, object], Mapping[str, object]], Iterable[tuple[float, Reading]]
    ]
    "(pipeline, pairs of texts, config.json, options) to the score of each pair, and what was read of it."
    check: Callable[[TaskModel, Mapping[str, object]], None]
    "(model, config.json): raises an InputError if such a model has no scores."


@dataclass(frozen=True, kw_only=True)
class Task(ReadingRules):
    """Everything that depends on the task: add one by writing a file with such a value and registering it."""

    aliases: tuple[str, ...]
    "Other names that users may give it: Hugging Face's pipelines."
    architecture: str
    "How Hugging Face's classes for it end."
    build: Callable[..., TaskModel]
    "(backbone, labels=..., **options) to a model with a new head."
    inputs: Callable[..., Any]
    "What users give, checked, as a list."
    loss: Callable[..., Tensor]
    "The mean loss, of what the model gives and labels."
    decode: Callable[..., Any]
    "From the head's outputs on the pieces of a document to a result."
    metric: Callable[..., dict[str, float]]
    "How good predictions are, by the measure that papers report."
    backbones: str = "any"
    'Which backbones can do it: "encoder", "decoder" (those with one) or "any".'
    has_labels: bool = False
    "Whether the head gives a score for each of some classes with names."
    drops_labels: bool = False
    "Whether names of classes in a config.json mean nothing to its models, and are not kept."
    has_problem: bool = False
    "Whether the labels may exclude each other or not, or be numbers (`problem_type`)."
    head_dropout: bool = False
    "Whether the head drops at a rate that checkpoints may set (`classifier_dropout`)."
    verb: str = ""
    "The Reader's method for it, if it has another name."
    run: Callable[..., object] = no_run
    "(pipeline, *inputs, **options) to results: what calling a Reader does, if it has no verb for the task."
    head_sizes: Mapping[str, str] = field(default_factory=dict)
    "Options of `build` that checkpoints say by the first dimension of a tensor of the head."
    modules: tuple[str, ...] = ()
    "The head's modules with weights, if Hugging Face has no class for the task."
    encode: Callable[[Tokenizer, Inputs, str], list[Encoding]] = plain
    "(tokenizer, inputs, the reader's prompt) to the tokens of each input."
    expand: Callable[[Inputs], Inputs] = lambda inputs: inputs
    "One input for each document that is read, where a question has several."
    targets: Callable[[Labeling], list[Any]] = no_targets
    "The label of each piece of each document."
    attach: Callable[[Batch, Sequence[Any], Labeling], Batch] = with_table
    "(batch, the labels of its pieces, ...) to the batch with labels as the loss takes them."
    padded_loss: PaddedLoss = no_loss
    "The loss of labels as transformers' models take them."
    loss_sum: Callable[..., Loss] = no_loss_sum
    """(model, batch with labels, **options) to the sum that `loss` is the mean of, and its weight: batches of
    one step are added up, and divided by the sum of their weights."""
    form: Form | None = None
    "What its labeled examples are in files, if they can be told from their columns."
    judge: Judge | None = None
    "How good results of the verb are, by the measure that papers report, if it can be told of results."
    label_tokens: Callable[[Any], int] = lambda label: 0
    "Tokens of the budget that a label takes."
    ranking: Ranking | None = None
    "How its models score a query with a document, if they can."
    disk_name: str = ""
    "What precedes the head's tensors in files of our own types, if it is not the name."

    def fits(self, config: ModelConfig) -> bool:
        """Whether models of this config can do it."""
        return self.backbones in ("any", "decoder" if config.has_decoder else "encoder")

    @property
    def saved_as(self) -> str:
        """What precedes the head's tensors in files of our own types."""
        return self.disk_name or self.name


def wrong_task(verb: str, task: str) -> InputError:
    """The error for a verb that a model was not loaded for."""
    return bad("task", f"{verb} to call {verb}()", task, f"Load the model with task={verb!r}.")
