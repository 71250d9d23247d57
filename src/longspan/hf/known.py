"""What Longspan knows of transformers: which versions, which classes, and how these are called."""

import re
import sys
from importlib import import_module
from importlib.util import find_spec
from inspect import isfunction, signature
from typing import Any

from torch import nn

from longspan.errors import InputError

FROM, BEFORE = (5, 10), (5, 23)
"""Versions whose attention was compared with ours, as in the extra `hf` of the package."""
TAKEN = "LongformerSelfAttention, LEDEncoderSelfAttention or BigBirdAttention"
HOMES = {
    "transformers.models.longformer.modeling_longformer": "longspan.hf.longformer",
    "transformers.models.led.modeling_led": "longspan.hf.led",
    "transformers.models.big_bird.modeling_big_bird": "longspan.hf.bigbird",
}
"""Where transformers has its classes, and where ours are that take their place."""


def swaps() -> dict[type[nn.Module], Any]:
    """Classes of transformers and what takes their place, of the families that this process has loaded."""
    loaded = [ours for theirs, ours in HOMES.items() if theirs in sys.modules]
    return {theirs: ours for home in loaded for theirs, ours in of(home).items()}


def of(home: str) -> dict[type[nn.Module], Any]:
    """The classes that a module of ours takes the place of, and what takes it."""
    return {ours.__base__: ours for ours in import_module(home).CLASSES}


def activations() -> dict[type[nn.Module], Any]:
    """The same of activations, where transformers is loaded."""
    return of("longspan.hf.activations") if "transformers.activations" in sys.modules else {}


def is_known() -> bool:
    """Whether there is a transformers, of a version that was compared with ours."""
    return find_spec("transformers") is not None and _compared(import_module("transformers").__version__)


def check_version() -> None:
    """Refuse a transformers that was never compared with ours."""
    version: str = import_module("transformers").__version__
    if not _compared(version):
        least, most = (".".join(map(str, end)) for end in (FROM, BEFORE))
        raise InputError(
            f"`transformers` must be of version {least} to below {most}, but is {version}: "
            "Longspan does not know what its attention computes. "
            f"Install one of these (pip install longspan[hf]), or a Longspan that knows {version}."
        )


def _compared(version: str) -> bool:
    match = re.match(r"(\d+)\.(\d+)", version)
    return match is not None and FROM <= tuple(map(int, match.groups())) < BEFORE


def refuse_unknown(module: nn.Module, ours: type[nn.Module]) -> None:
    """Refuse a module that is called in another way than ours, or that no class decides about any more."""
    theirs = type(module)
    for name in (name for name, value in vars(ours).items() if isfunction(value) and name in vars(theirs)):
        if name in vars(module):
            raise InputError(
                f"`{theirs.__name__}.{name}` must be that of its class, but was replaced in the model, "
                "perhaps to move layers between devices. Accelerate it before that, or without device_map."
            )
        known, actual = (tuple(signature(getattr(kind, name)).parameters) for kind in (ours, theirs))
        if actual != known:
            raise InputError(
                f"`{theirs.__name__}.{name}` must take ({', '.join(known)}), "
                f"but takes ({', '.join(actual)}): "
                "this transformers was changed, and Longspan does not know what its attention computes."
            )
