"""What a family of checkpoints is, as data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from longspan.checkpoints.keymap import BODY, TIED, KeyTable, own_table
from longspan.checkpoints.schema import Raw
from longspan.errors import bad
from longspan.formats.weights import Weights
from longspan.models.config import EncoderConfig
from longspan.models.task import ModelConfig

CLASSES = {
    "encode": "Model",
    "fill": "ForMaskedLM",
    "classify": "ForSequenceClassification",
    "tag": "ForTokenClassification",
    "answer": "ForQuestionAnswering",
    "choose": "ForMultipleChoice",
    "summarise": "ForConditionalGeneration",
}
"""How Hugging Face's classes end, by task."""
PRETRAINING = "ForPreTraining"
TASK_OF = {ending: task for task, ending in CLASSES.items()} | {PRETRAINING: "fill", "ForCausalLM": "fill"}


@dataclass(frozen=True, kw_only=True)
class Family:
    """How Hugging Face names and configures one of our bodies."""

    model_type: str
    name: str
    "How its classes begin."
    own_type: str
    "The model type of what Hugging Face cannot express."
    kind: type[Any]
    prefix: str
    "What stands before the body's keys in all classes but the bare model."
    heads: Mapping[str, Mapping[str, str]]
    "For each task, our modules of the head and theirs."
    ties: Mapping[str, str]
    "Tensors of the head that are one with another."
    read: Callable[[Raw], ModelConfig]
    write: Callable[[Any], dict[str, Any]]
    cannot: Callable[[Any], str | None]
    "Why Hugging Face cannot express a config, None if it can."
    body_ties: Mapping[str, str] = field(default_factory=dict)
    "And of the body."
    adapt: Callable[[Raw, Weights], Weights] = lambda raw, weights: weights
    "What is done to the weights of a file before they are looked at."
    spare: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    "For each class, modules that its files hold though it does not use them."
    body: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: BODY)
    "Our modules of the body and theirs."
    activations: Mapping[str, str] = field(default_factory=dict)
    "Tasks whose heads have another activation than is usual for such a body."
    pretrained: str = "fill"
    "The task that its files for pretraining are read for."
    bare: str = "encode"
    "And those of the bare model."
    offset: bool = False
    "Whether positions begin behind the padding token's number."
    gone: Mapping[str, str] = field(default_factory=dict)
    "Tasks whose classes Hugging Face has no longer, in words."
    read_only: bool = False
    "Whether its models are saved as those of another family."

    @property
    def words(self) -> tuple[str, ...]:
        """The table of words, by all names that a file may have it by."""
        (first,) = (theirs[0] for ours, theirs in self.body.items() if ours.endswith("embeddings.words"))
        return f"{first}.weight", *(name.removeprefix("{body}") for name in self.body_ties)

    def for_task(self, config: ModelConfig, task: str) -> ModelConfig:
        """The config with the activation that the head of a task has."""
        act = self.activations.get(task)
        return replace(config, head_activation=act) if act and isinstance(config, EncoderConfig) else config

    def why_not(self, config: ModelConfig, task: str) -> str | None:
        """Why Hugging Face cannot express a model, None if it can."""
        usual = self.activations.get(task, "usual")
        if isinstance(config, EncoderConfig) and config.head_activation != usual:
            return "another activation in the head"
        return self.cannot(config)

    def table(self, task: str, prefix: str | None) -> KeyTable:
        """The key table of files for a task; prefix=None for files of our own type."""
        if task not in self.heads:
            raise bad("task", f"one of {', '.join(self.heads)} for {self.name}", task)
        if prefix is None:
            return own_table(task, self.heads[task])
        ties = self.ties if task in TIED else {}
        return KeyTable(prefix, self.heads[task], {**ties, **self.body_ties}, self.body)

    def class_name(self, config: ModelConfig, task: str, raw: Raw) -> str:
        """The Hugging Face class for a task: that of `raw` if it does the same."""
        ending = self.ending(raw)
        if ending is None or TASK_OF[ending] != task:
            ending = CLASSES[task]
        if ending != PRETRAINING and task == "fill":
            ending = "ForCausalLM" if getattr(config, "causal", False) else CLASSES[task]
        return self.name + ending

    def spares(self, class_name: str) -> tuple[str, ...]:
        """The modules that a class holds but does not use."""
        return self.spare.get(class_name.removeprefix(self.name), ())

    def ending(self, raw: Raw) -> str | None:
        """What the file's class does, by the end of its name; None if it names none that we know."""
        given = raw.get("architectures")
        first = given[0] if isinstance(given, list) and given else None
        if not isinstance(first, str):
            return None
        return next((ending for ending in TASK_OF if first.endswith(ending)), None)

    def task(self, raw: Raw) -> str:
        """The task that a file was made for."""
        ending = self.ending(raw)
        if ending is None and raw.get("architectures"):
            known = ", ".join(CLASSES)
            raise bad(
                "architectures",
                "a class that Longspan knows",
                raw["architectures"],
                f"Give task=, one of {known}.",
            )
        if ending is None or ending == CLASSES["encode"]:
            return self.bare
        return TASK_OF[ending] if TASK_OF[ending] in self.heads and ending != PRETRAINING else self.pretrained


def unlike_layers(config: EncoderConfig, *, rescales: bool = False) -> str | None:
    """What no encoder of Hugging Face has in its layers, nor before them unless it `rescales` its words."""
    if config.norm_first:
        return "norms before the blocks"
    if config.rescale_embeddings and not rescales:
        return "rescaled embeddings"
    return "dropout within feed-forward blocks" if config.activation_dropout else None


def unlike_bert(config: EncoderConfig, *, rescales: bool = False) -> str | None:
    """What most families of Hugging Face have no words for, None if there is nothing of the kind."""
    if layers := unlike_layers(config, rescales=rescales):
        return layers
    if config.buckets:
        return "biases by distance"
    if config.narrow is not None:
        return "embeddings that are projected"
    return None if config.types else "a model without token types"
