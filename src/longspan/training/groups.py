"""Which parameters are changed alike."""

from collections.abc import Mapping
from typing import NamedTuple

from torch import nn


class Group(NamedTuple):
    """Parameters with one learning rate and one weight decay."""

    names: list[str]
    scale: float
    "A factor of the learning rate."
    weight_decay: float


def parameter_groups(
    model: nn.Module,
    lr: float,
    weight_decay: float,
    layer_decay: float = 1.0,
    rates: Mapping[str, float] | None = None,
) -> list[Group]:
    """Groups of the trainable parameters; norms and biases do not decay."""
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    matrices = [name for name, p in named if p.dim() > 1]
    rest = [name for name, p in named if p.dim() < 2]
    groups = [Group(matrices, 1.0, weight_decay), Group(rest, 1.0, 0.0)]
    return [group for group in groups if group.names]
