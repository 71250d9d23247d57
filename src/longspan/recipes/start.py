"""What pretraining begins with: a model from a folder, or a new one by the preset of a family."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from longspan.checkpoints.load import load_model
from longspan.errors import InputError, bad, no_option, one_of
from longspan.families.backbone import HasGlobalProjections
from longspan.families.config import EncoderConfig
from longspan.families.registry import presets
from longspan.families.task_model import TaskModel
from longspan.tasks.fill import FILL
from longspan.tasks.registry import build
from longspan.text.tokenizer import Tokenizer
from longspan.training.step import drawing


@dataclass(frozen=True)
class Start:
    """A masked language model, its tokenizer, and where they come from."""

    model: TaskModel
    tokenizer: Tokenizer
    source: str
    "A folder or a preset."
    config: dict[str, Any] = field(default_factory=dict)
    "The config.json of the folder."
    notes: tuple[str, ...] = ()

    @property
    def is_new(self) -> bool:
        """Whether its weights are random."""
        return not self.config

    @staticmethod
    def from_folder(source: str | Path, tokenizer: Tokenizer | None = None) -> "Start":
        """The model in a folder or on the hub, as it is or lengthened, in float32."""
        loaded = load_model(source, FILL.name, dtype="float32")
        own = tokenizer
        if own is None:
            own = Tokenizer.from_folder(loaded.folder, vocab_size=loaded.model.config.vocab_size)
        _check_words(own, loaded.model.config)
        return Start(loaded.model, own, str(source), loaded.config, loaded.notes)

    @staticmethod
    def from_preset(
        name: str,
        tokenizer: Tokenizer,
        *,
        length: int | None = None,
        seed: int = 0,
        changes: Mapping[str, object] | None = None,
    ) -> "Start":
        """A new model that reads `length` tokens; `changes` are fields of its config with other values."""
        known = {preset: config for preset, config in presets().items() if not config.has_decoder}
        config = known[one_of("config", name, known)].encoder
        fitted = _fitted(config, tokenizer, length, changes or {})
        with drawing(seed):
            return Start(build(fitted, FILL.name), tokenizer, name)


def _fitted(
    config: EncoderConfig, tokenizer: Tokenizer, length: int | None, changes: Mapping[str, object]
) -> EncoderConfig:
    """The config with the words of a tokenizer."""
    names = [one.name for one in fields(config)]
    for name in changes:
        if name not in names:
            raise no_option(name, names)
    if tokenizer.pad is None:
        raise InputError("The tokenizer has no padding token, which a config must name.")
    own: dict[str, Any] = {"vocab_size": tokenizer.vocab_size, "pad_id": tokenizer.pad}
    for name in names:  # what is said of each layer alike is said of any number of layers
        value = getattr(config, name)
        if isinstance(value, tuple) and len(value) == config.layers and len({*value}) == 1:
            own[name] = value[0]
    if config.position_offset:  # positions are counted from behind the padding token
        own["position_offset"] = tokenizer.pad + 1
    if length is not None:
        own["positions"] = length
    fitted = replace(config, **{**own, **changes})
    _check_words(tokenizer, fitted)
    return fitted


def _check_words(tokenizer: Tokenizer, config: EncoderConfig) -> None:
    if tokenizer.vocab_size > config.vocab_size:
        requirement = f"of at most {config.vocab_size} words, as many as the model has"
        raise bad("tokenizer", requirement, tokenizer.vocab_size, "Use the model's own.")


def mirrors(model: nn.Module) -> list[HasGlobalProjections]:
    """Modules whose global projections are copies of the local ones."""
    found: list[HasGlobalProjections] = []
    for part in model.modules():
        if isinstance(part, HasGlobalProjections):
            twin = copy.deepcopy(part)
            twin.copy_local_to_global()
            states = (module.state_dict() for module in (part, twin))
            if all(torch.equal(a, b) for a, b in zip(*(state.values() for state in states), strict=True)):
                found.append(part)
    return found
