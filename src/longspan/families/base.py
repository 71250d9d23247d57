"""A family as data: its config, its checkpoints, its presets, and how a short model becomes one of it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from longspan.errors import bad
from longspan.families.config import EncoderConfig
from longspan.families.keys import BACKBONE, OWN_PREFIX, KeyTable
from longspan.families.lengthening import Lengthening
from longspan.families.schema import Raw
from longspan.families.seq2seq.model import Seq2SeqConfig
from longspan.formats.tensorflow_names import Rename, torch_names
from longspan.formats.weights import Weights

ModelConfig = EncoderConfig | Seq2SeqConfig
BARE = "Model"
PRETRAINING = "ForPreTraining"
CAUSAL_LM = "ForCausalLM"
OWN_CLASS = "Longspan"
"""How the names of classes begin that only we have."""
ATTENTION = "layers.#.attention.qkv"
SAME_HEAD = {PRETRAINING: "ForMaskedLM", CAUSAL_LM: "ForMaskedLM"}
"""Classes whose head is that of another."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """How Hugging Face names and configures the models of one config class."""

    name: str
    "How its classes begin."
    model_type: str
    own_type: str
    "The model type of what Hugging Face cannot express."
    config: type[Any]
    prefix: str
    "What precedes the backbone's keys in all classes but the bare model."
    heads: Mapping[str, Mapping[str, str]]
    "For each class, by its ending, our modules of the head and theirs."
    ties: Mapping[str, str]
    "Tensors of the head that are one with another."
    ties_words: bool = True
    "Whether words are decoded with their own embeddings where a config.json does not say."
    read: Callable[[Raw], ModelConfig]
    write: Callable[[Any], dict[str, Any]]
    cannot: Callable[[Any], str | None]
    "Why Hugging Face cannot express a config, None if it can."
    fields: frozenset[str] = frozenset()
    "Fields of config.json that mean something to this family only."
    stale: frozenset[str] = frozenset()
    "Fields of the authors' own files that are never written."
    head_style: str = ""
    "Whose heads its classes have; empty if a decoder precedes them."
    backbone: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: BACKBONE)
    "Our modules of the backbone and theirs."
    other_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    "Names that modules of transformers have where its files keep the authors'; `head.` precedes the head's."
    backbone_ties: Mapping[str, str] = field(default_factory=dict)
    "Tensors of the backbone that are one with another."
    variable_names: Rename = torch_names
    "How the authors' own TensorFlow checkpoints name what torch would."
    adapt: Callable[[Raw, Weights], Weights] = lambda raw, weights: weights
    "What is done to the weights of a file before they are looked at."
    merge: Callable[[Raw, Weights, str | None], Weights] | None = None
    "How an adapter, by its name, becomes part of the weights; None: files of the family hold none."
    is_original: Callable[[Raw], bool] = lambda raw: False
    "Whether a config.json that names another type, or none, is one that the authors' own code wrote."
    unused: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    "For each class, modules that its files hold though it does not use them."
    own_heads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    "Classes that Hugging Face has in other families only, and our modules of their heads."
    activations: Mapping[str, str] = field(default_factory=dict)
    "Classes whose heads have another activation than is usual for the config."
    pretrained: str = "ForMaskedLM"
    "The class that its files for pretraining are read as."
    bare: str = BARE
    "And those of the bare model."
    gone: Mapping[str, str] = field(default_factory=dict)
    "Classes that Hugging Face no longer has, in words."
    read_only: bool = False
    "Whether its models are saved as those of another family."
    own_only: bool = False
    "Whether only Longspan has it, so that no other config.json names its model type."
    config_file: str | None = "config.json"
    "Where the authors' own checkpoints keep their config; None: they have none."
    heads_in_old_files: Callable[[Raw], str] = lambda stored: ""
    "The head style of files of our own type that do not say."
    own_modules: Mapping[str, str] = field(default_factory=dict)
    "Modules of heads that files of our own type have under another name."
    lengthening: Lengthening | None = None
    "How a short model becomes one of this family."
    presets: Mapping[str, ModelConfig] = field(default_factory=dict)
    "Well-known models of the family."

    @property
    def words(self) -> tuple[str, ...]:
        """The table of words, by all names that a file may have it by."""
        (first,) = (theirs[0] for ours, theirs in self.backbone.items() if ours.endswith("embeddings.words"))
        return f"{first}.weight", *(name.removeprefix("{backbone}") for name in self.backbone_ties)

    def as_stored(self, present: Collection[str]) -> "Family":
        """The family by the names that a file has: the usual ones, or those of transformers' own modules."""
        (other, *_) = self.other_names.get(ATTENTION, ("",))
        first = f"{other.replace('#', '0')}.weight"
        if not other or not any(name.endswith(first) for name in present):
            return self
        return self.as_modules

    @property
    def as_modules(self) -> "Family":
        """The family by the names of transformers' own modules."""
        backbone = {name: theirs for name, theirs in self.other_names.items() if not name.startswith("head.")}
        heads = {
            ending: {ours: self.other_names.get(f"head.{ours}", (disk,))[0] for ours, disk in head.items()}
            for ending, head in self.heads.items()
        }
        return replace(self, backbone={**self.backbone, **backbone}, heads=heads)

    def for_class(self, config: ModelConfig, ending: str) -> ModelConfig:
        """The config with the activation that the head of a class has."""
        activation = self.activations.get(ending)
        if activation is None or config.has_decoder:
            return config
        return replace(config.encoder, head_activation=activation)

    def why_not(self, config: ModelConfig, ending: str) -> str | None:
        """Why Hugging Face cannot express a model, None if it can."""
        if ending not in self.heads:
            return "a task that it has no class for"
        if config.has_decoder:
            return self.cannot(config)
        if config.encoder.head_activation != self.activations.get(ending, "usual"):
            return "another activation in the head"
        other = config.encoder.head_style != self.head_style
        return self.cannot(config) or ("heads of another family" if other else None)

    def table(self, ending: str, prefix: str, new: Iterable[str] = ()) -> KeyTable:
        """The key table of Hugging Face's files for a class; `new` modules are those of a task it has not."""
        head = self.head_modules(ending, new)
        ties = {**(self.ties if "decoder" in head else {}), **self.backbone_ties}
        return KeyTable(prefix, head, ties, self.backbone)

    def own_table(self, ending: str, head: str, config: ModelConfig, new: Iterable[str] = ()) -> KeyTable:
        """The key table of files of our own type, where `head` precedes the names of the head's tensors.

        The names are ours: what Hugging Face would compute differently, it shall not find by its own names.
        """
        modules = {ours: self.own_modules.get(ours, ours) for ours in self.head_modules(ending, new)}
        words = f"{{backbone}}{config.words_name}"
        ties = {f"{head}.decoder.weight": words} if "decoder" in modules else {}
        return KeyTable(OWN_PREFIX, {ours: f"{head}.{disk}" for ours, disk in modules.items()}, ties, None)

    def head_modules(self, ending: str, new: Iterable[str] = ()) -> Mapping[str, str]:
        """Our modules of a class's head and theirs; where they have no such class, the `new` ones."""
        if ending in self.heads:
            return self.heads[ending]
        if not (names := {module: module for module in (*new, *self.own_heads.get(ending, ()))}):
            raise bad("architecture", f"one of {', '.join(self.heads)} for {self.name}", ending)
        return names

    def class_name(self, config: ModelConfig, ending: str, raw: Raw) -> str:
        """The Hugging Face class for a head: that of `raw` if it has the same."""
        stated = self.ending(raw)
        if stated is None or SAME_HEAD.get(stated, stated) != ending:
            stated = ending
        return self.name + (stated if stated == PRETRAINING else _by_direction(config, ending, stated))

    def own_class_name(self, config: ModelConfig, ending: str) -> str:
        """The class that files of our own type name."""
        return OWN_CLASS + _by_direction(config, ending, ending)

    def unused_modules(self, class_name: str) -> tuple[str, ...]:
        """The modules that a class holds but does not use."""
        return self.unused.get(class_name.removeprefix(self.name), ())

    def ending(self, raw: Raw) -> str | None:
        """How the name of the file's class ends; None if it names none that we know."""
        first = stated_class(raw) or ""
        return next((ending for ending in (*ENDINGS, *SAME_HEAD, BARE) if first.endswith(ending)), None)

    def architecture(self, raw: Raw) -> str:
        """The class, by its ending, that a file is read as if nobody says otherwise."""
        ending = self.ending(raw)
        if ending is None and raw.get("architectures"):
            repair = "Give task=, which says what to use it for."
            raise bad("architectures", "a class that Longspan knows", raw["architectures"], repair)
        if ending is None or ending == BARE:
            return self.bare
        head = SAME_HEAD.get(ending, ending)
        has = head in self.heads or head in self.own_heads
        return head if has and ending != PRETRAINING else self.pretrained


def _by_direction(config: ModelConfig, ending: str, stated: str) -> str:
    """The class of a head that scores words: by whether the model sees what comes after them."""
    if ending != "ForMaskedLM":
        return stated
    return CAUSAL_LM if getattr(config, "causal", False) else ending


def stated_class(raw: Raw) -> str | None:
    """The first class that a config.json names."""
    stated = raw.get("architectures")
    first = stated[0] if isinstance(stated, list) and stated else None
    return first if isinstance(first, str) else None


ENDINGS = (
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
    "ForConditionalGeneration",
)
"""How Hugging Face's classes with a head end."""
