"""How a short model becomes a long one: what each family says of itself."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from typing import Any

from torch import Tensor

from longspan.errors import bad, no_option, whole
from longspan.families.config import EncoderConfig
from longspan.families.task_model import TaskModel

Option = int | float | str | bool | tuple[int, ...] | Tensor
"""What an option of lengthening may be."""
RADIUS = 256


@dataclass(frozen=True, kw_only=True)
class Short:
    """The model to be lengthened."""

    config: EncoderConfig
    architecture: str
    has_decoder: bool
    to: int
    "Tokens that the new model shall read."

    def require(self, fits: bool, requirement: str) -> None:
        """Raise unless the source fits what a family asks for."""
        if not fits:
            small = "" if self.config.embedding_size is None else " with small embeddings"
            raise bad("source", requirement, self.config.family + small)

    def fields(self, **changes: Any) -> dict[str, Any]:
        """The fields that the new config has in common with the old one, with its new length."""
        common = {one.name: getattr(self.config, one.name) for one in fields(EncoderConfig)}
        return common | {"positions": whole("to", self.to, 1), "head_activation": "usual"} | changes

    def radius(self, chosen: Option | None, usual: int = RADIUS) -> int | tuple[int, ...]:
        """The radius asked for, else the usual one or half of what the source reads, if that is less."""
        if chosen is None:
            return min(usual, max(1, self.config.positions // 2))
        if isinstance(chosen, (str, bool, float, Tensor)):
            raise bad("radius", "a whole number, or one for each layer", chosen)
        return chosen

    def keep_head(self, config: EncoderConfig) -> EncoderConfig:
        """The new config, whose head computes what the source's does."""
        ending = self.architecture
        activation = self.config.activation_in_head(ending)
        same = ending not in ACTIVATED or config.activation_in_head(ending) == activation
        return config if same else replace(config, head_activation=activation)


ACTIVATED = ("ForMaskedLM", "ForSequenceClassification", "ForMultipleChoice")
"""Classes whose heads have an activation."""


@dataclass(frozen=True, kw_only=True)
class Lengthening:
    """One way to make a model long, chosen by its name: `lengthen(source, pattern=name)`."""

    name: str
    config: Callable[[Short, Mapping[str, Option]], EncoderConfig]
    "The config of the new model, from the source and the options."
    options: Mapping[str, str] = field(default_factory=dict)
    "Options that it takes, each with its help text."
    start: Callable[[TaskModel, EncoderConfig], None] = lambda model, source: None
    "Initializes what the source has no weights for."
    finish: Callable[[TaskModel, Mapping[str, Option]], None] = lambda model, options: None
    "Changes what must not be compared with the source, after the comparison."
    compared: Callable[[TaskModel], AbstractContextManager[None]] = lambda model: nullcontext()
    "The state in which the new model equals the source on short documents."
    copied: Callable[[EncoderConfig], tuple[str, ...]] = lambda source: ()
    "What beside embeddings and layers comes from the source."
    notes: Callable[[EncoderConfig], dict[str, str]] = lambda config: {}
    "What the report says of the new model beside its sizes."
    keeps_positions: bool = False
    "The position table stays as it is, or there is none."
    scales_angles: bool = False
    "It is for models with rotary positions; others are for those with a table."
    exact: Callable[[EncoderConfig, EncoderConfig], int | None] = lambda old, new: None
    """The longest document on which the new model must compute what the old one does, 0 for none; None: as
    far as both see everything."""

    def checked(self, options: Mapping[str, Option | None]) -> dict[str, Option]:
        """The options that were given, if all of them are known."""
        chosen = {name: value for name, value in options.items() if value is not None}
        for name in chosen:
            if name not in self.options:
                raise no_option(name, sorted(self.options))
        return chosen


def require_full_attention(short: Short) -> None:
    """Raise unless the source sees everything, as short models do."""
    short.require(short.config.full_attention, "a short model that sees everything")
