"""Which parameters are trained, and how: freezing by name, no decay of norms, rates by depth and name."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import NamedTuple

from torch import nn

from longspan.errors import InputError, bad, number
from longspan.families.backbone import Backbone
from longspan.nn.layers import stacks

HIGHEST = 1e6
"""No learning rate is above it."""
NEAR = 3
"""Names that are offered for a pattern that matches none."""


class Group(NamedTuple):
    """Parameters that are trained alike."""

    scale: float
    "Their learning rate as a share of the usual one."
    weight_decay: float
    parameters: dict[str, nn.Parameter]
    "By name, in the order of the model."

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its parameters, in the order of the model."""
        return tuple(self.parameters)


def parameter_groups(
    model: nn.Module,
    lr: float,
    weight_decay: float,
    layer_decay: float = 1.0,
    rates: Mapping[str, float] | None = None,
    *,
    decay_embeddings: bool = True,
) -> list[Group]:
    """The parameters that require a gradient, in groups; the same for the same model, whatever came before.

    Vectors (norms) and biases of any shape do not decay, and tables of embeddings only with
    `decay_embeddings`. A layer has the rate of the one above it times `layer_decay`: the head has `lr`, the
    last layer of each stack `layer_decay` times as much, embeddings the least. `rates` gives parameters rates
    of their own by patterns of names, of which the first that matches counts, whatever the depth.

    >>> groups = parameter_groups(nn.Linear(3, 2), 1e-3, 0.01, rates={"bias": 2e-3})
    >>> [(group.names, group.scale, group.weight_decay) for group in groups]
    [(('weight',), 1.0, 0.01), (('bias',), 2.0, 0.0)]
    """
    if number("lr", lr, 0, HIGHEST) == 0:
        raise bad("lr", "more than 0", lr)
    number("weight_decay", weight_decay, 0, HIGHEST)
    if number("layer_decay", layer_decay, 0, 1) == 0:
        raise bad("layer_decay", "more than 0", layer_decay, "freeze() trains nothing below a head.")
    own = _own_rates(model, rates or {})
    above = _layers_above(model) if layer_decay != 1 else {}
    tables = set() if decay_embeddings else _tables(model)
    groups: dict[tuple[float, float], Group] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            scale = own[name] / lr if name in own else layer_decay ** above.get(name, 0)
            is_bias = parameter.dim() < 2 or name.endswith("bias")
            decay = 0.0 if is_bias or name in tables else float(weight_decay)
            group = groups.setdefault((scale, decay), Group(scale, decay, {}))
            group.parameters[name] = parameter
    if not groups:
        raise bad("model", "one with parameters to train", "frozen", "Freeze less of it.")
    return list(groups.values())


def freeze(model: nn.Module, patterns: Iterable[str]) -> tuple[str, ...]:
    """Let parameters whose names match a pattern be as they are; their names.

    A pattern has the wildcards of a shell and may name a module: "backbone.embeddings", "*.norm.*". Weights
    that two modules share have the first name only.

    >>> freeze(nn.Linear(3, 2), ["bias"])
    ('bias',)
    """
    frozen = _matching(model, "freeze", patterns)
    for name, parameter in model.named_parameters():
        if name in frozen:
            parameter.requires_grad_(False)
    return tuple(frozen)


def train_only(model: nn.Module, patterns: Iterable[str]) -> tuple[str, ...]:
    """Freeze everything but what matches, such as "head"; the names that are trained.

    >>> train_only(nn.Linear(3, 2), ["bias"])
    ('bias',)
    """
    trained = _matching(model, "train_only", patterns)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(parameter.requires_grad and name in trained)
    return tuple(name for name, parameter in model.named_parameters() if parameter.requires_grad)


def matches(name: str, pattern: str) -> bool:
    """Whether a pattern names a parameter, or a module that it is inside of.

    >>> matches("head.out.bias", "head"), matches("head.out.bias", "*.out.*"), matches("headless", "head")
    (True, True, False)
    """
    return fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*")


def _matching(model: nn.Module, option: str, patterns: Iterable[str]) -> list[str]:
    """The names that match a pattern; each must match some."""
    if isinstance(patterns, str):
        raise bad(option, "a list of patterns", patterns, f"Write [{patterns!r}].")
    names = [name for name, _ in model.named_parameters()]
    chosen = list(patterns)
    for pattern in chosen:
        if not isinstance(pattern, str) or not any(matches(name, pattern) for name in names):
            raise _unknown(model, option, pattern)
    return [name for name in names if any(matches(name, pattern) for pattern in chosen)]


def _unknown(model: nn.Module, option: str, pattern: object) -> InputError:
    modules = [name for name, part in model.named_modules() if name and any(True for _ in part.parameters())]
    known = [*modules, *(name for name, _ in model.named_parameters())]
    near = get_close_matches(str(pattern).rstrip(".*"), known, n=NEAR, cutoff=0.5) or modules[:NEAR]
    return bad(option, "a pattern of parameter names", pattern, f"Names are {', '.join(near)}, ...")


def _own_rates(model: nn.Module, rates: Mapping[str, float]) -> dict[str, float]:
    """The learning rates of parameters that have their own."""
    for rate in rates.values():
        if number("rates", rate, 0, HIGHEST) == 0:
            raise bad("rates", "more than 0", rate, "freeze() trains nothing of a module.")
    names = _matching(model, "rates", rates)
    return {name: next(rate for pattern, rate in rates.items() if matches(name, pattern)) for name in names}


def _layers_above(model: nn.Module) -> dict[str, int]:
    """How many steps each parameter is below the head: 1 for the last layer of a stack, 2 for the one before.

    Everything else of a backbone is below all layers; of another model, what comes before its stack.
    """
    found = {id(stack): stack for stack in stacks(model)}
    if not found:
        raise bad("layer_decay", "1 for a model without a stack of layers", "less")
    bottom = max(map(len, found.values())) + 1
    above: dict[str, int] = {}
    seen = False
    for path, part in model.named_modules():
        for name, _ in part.named_parameters(path) if isinstance(part, Backbone) else ():
            above.setdefault(name, bottom)
        if id(part) in found:
            seen = True
            for depth, layer in enumerate(found[id(part)]):
                for name, _ in layer.named_parameters(f"{path}.{depth}"):
                    above[name] = len(found[id(part)]) - depth
        elif not seen:
            for name, _ in part.named_parameters(path, recurse=False):
                above[name] = bottom
    return above


def _tables(model: nn.Module) -> set[str]:
    """Embeddings of words, positions, types and distances."""
    parts = [(path, part) for path, part in model.named_modules() if isinstance(part, nn.Embedding)]
    return {name for path, part in parts for name, _ in part.named_parameters(path)}
