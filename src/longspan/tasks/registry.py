"""The tasks by name: a new one is a file beside this one and a line in TASKS."""

from typing import TYPE_CHECKING, Literal, overload

from longspan.errors import bad, guess, whole
from longspan.families.backbone import init_weights
from longspan.families.base import ModelConfig
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.families.seq2seq.model import Seq2SeqConfig
from longspan.families.task_model import TaskModel
from longspan.tasks.answer import ANSWER
from longspan.tasks.base import Task
from longspan.tasks.choose import CHOOSE
from longspan.tasks.classify import CLASSIFY
from longspan.tasks.encode import ENCODE
from longspan.tasks.fill import FILL
from longspan.tasks.late_interaction import LATE_INTERACTION
from longspan.tasks.summarize import SUMMARIZE
from longspan.tasks.tag import TAG

if TYPE_CHECKING:
    from torch import nn

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        ENCODE,
        FILL,
        CLASSIFY,
        TAG,
        ANSWER,
        CHOOSE,
        SUMMARIZE,
        LATE_INTERACTION,
    )
}


def task_named(name: str) -> Task:
    """The task of that name, ours or Hugging Face's.

    >>> task_named("ner").name
    'tag'
    """
    names = {alias: task for task in TASKS.values() for alias in (task.name, *task.aliases)}
    task = names.get(name.lower().replace("_", "-")) if isinstance(name, str) else None
    if task is None:
        raise bad("task", f"one of {', '.join(TASKS)}", name, guess(name, names))
    return task


def task_of(architecture: str) -> Task:
    """The task whose Hugging Face classes end so."""
    return next(task for task in TASKS.values() if task.architecture == architecture)


@overload
def build(config: Seq2SeqConfig, task: Literal["summarize"]) -> Seq2SeqLM: ...
@overload
def build(config: ModelConfig, task: str, *, labels: int = ..., **options: object) -> TaskModel: ...
def build(config: ModelConfig, task: str, *, labels: int = 2, **options: object) -> TaskModel:
    """A model with new weights for a task; `labels` counts the classes, `options` go to the pooling of
    "encode".

    >>> from longspan.families.longformer.model import LongformerConfig
    >>> tiny = LongformerConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16, radius=3)
    >>> build(tiny, "classify", labels=3).head.out
    Linear(in_features=8, out_features=3, bias=True)
    """
    whole("labels", labels, 1, most=2**20)
    if not hasattr(config, "backbone"):
        raise bad("config", "the config of a model family", type(config).__name__)
    chosen = task_named(task)
    if not chosen.fits(config):
        repair = f"The model has {'a' if config.has_decoder else 'no'} decoder."
        fitting = ", ".join(one.name for one in TASKS.values() if one.fits(config))
        raise bad("task", f"one of {fitting}", chosen.name, repair)
    model = chosen.build(config.backbone(), labels=labels, **options)
    model.global_tokens, model.padded_loss = chosen.global_tokens, chosen.padded_loss
    table: nn.Embedding = model.backbone.word_embeddings
    words = table.weight.data.clone() if model.decodes_words else None
    init_weights(model.head, model.config.init_std)
    if words is not None:
        table.weight.data = words  # tied to the head, which has just been drawn anew
    return model
