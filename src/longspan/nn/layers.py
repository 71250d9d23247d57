"""A stack of layers, and what it keeps for the backward pass."""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


class Layers(nn.ModuleList):
    """Layers in their order; with `gradient_checkpointing` only their inputs are kept for the backward pass.

    The rest is computed again, with the same dropout.
    """

    gradient_checkpointing: bool = False

    def recomputes(self) -> bool:
        """Whether layers are to be called by `checkpointed`."""
        return self.gradient_checkpointing and torch.is_grad_enabled()

    @staticmethod
    def checkpointed(layer: Callable[..., Tensor], *inputs: Any) -> Tensor:
        """layer(*inputs), of which only the inputs are kept."""
        return cast(Tensor, checkpoint(layer, *inputs, use_reentrant=False))


def stacks(module: nn.Module) -> list[Layers]:
    """All stacks of layers inside a module."""
    return [part for part in module.modules() if isinstance(part, Layers)]
