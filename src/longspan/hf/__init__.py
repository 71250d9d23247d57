"""Longspan's kernels inside models of transformers.

`accelerate` is for Longformer, LED (its encoder) and BigBird. Models that let their attention be chosen take
attn_implementation="longspan", which importing this module makes known to transformers.
"""

from importlib import import_module
from typing import TypeVar

from torch import nn

from longspan.errors import InputError, bad
from longspan.hf import known
from longspan.hf.known import TAKEN, check_version, is_known, refuse_unknown, swaps

Model = TypeVar("Model", bound=nn.Module)
INSTEAD = 'Other models may take it by model.set_attn_implementation("longspan").'


def accelerate(model: Model, *, activations: bool = False) -> Model:
    """`model` itself, whose attention Longspan's kernels now compute; nothing else changes.

    With `activations` also "gelu_new", BigBird's, by one operation of torch, which is a third of its time.

    Parameters, state dict, hooks, training and saving are what they were, and `restore` undoes it. Calls that
    the kernels do not serve (`output_attentions=True`, other devices than the CPU, export) are left to
    transformers' own code. Doing it twice does nothing more.

    >>> import transformers
    >>> config = transformers.LongformerConfig(
    ...     num_hidden_layers=2, hidden_size=8, num_attention_heads=2, intermediate_size=8
    ... )
    >>> accelerated(accelerate(transformers.LongformerModel(config)))
    2
    """
    layers = swaps()
    table = layers | known.activations() if activations else layers
    modules = [module for module in _modules(model) if type(module) in table]
    if not any(type(module) in layers for module in modules) and not accelerated(model):
        raise bad("model", f"a model of transformers with {TAKEN}", type(model).__name__, INSTEAD)
    if modules:
        check_version()
    for module in modules:
        refuse_unknown(module, table[type(module)])
    for module in modules:
        module.__class__ = table[type(module)]
    return model


def restore(model: Model) -> Model:
    """`model` itself, with transformers' own attention again.

    >>> restore(nn.Linear(3, 2))
    Traceback (most recent call last):
    longspan.errors.InputError: `model` must be accelerated to be restored, but is not.
    """
    back = {ours: theirs for theirs, ours in (swaps() | known.activations()).items()}
    modules = [module for module in _modules(model) if type(module) in back]
    if not modules:
        raise InputError("`model` must be accelerated to be restored, but is not.")
    for module in modules:
        module.__class__ = back[type(module)]
    return model


def accelerated(model: nn.Module) -> int:
    """How many attention layers of `model` Longspan serves.

    >>> accelerated(nn.Linear(3, 2))
    0
    """
    layers = {ours for ours in swaps().values() if ours.IS_LAYER}
    return sum(type(module) in layers for module in _modules(model))


def _modules(model: object) -> list[nn.Module]:
    return list(model.modules()) if isinstance(model, nn.Module) else []


if is_known():
    import_module("longspan.hf.interface").register()
