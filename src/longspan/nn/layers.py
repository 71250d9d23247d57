"""A stack of layers, and what it keeps for the backward pass."""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from longspan.nn.rows import Scratch


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


class Room:
    """The memory that a stack's layers work in, one after another, where nothing is differentiated.

    A layer reads x from one part and leaves its result in another; then they change places. Of layers that
    somebody watches by a hook every result has memory of its own, and so have the embeddings.
    """

    def __init__(self, stack: Layers, x: Tensor, projections: int) -> None:
        self._projected = x.new_empty(len(x), projections * x.shape[1])
        self._kept = _watched(stack)
        self._spare: Tensor | None = None
        self._first: Tensor | None = x

    def run(self, layer: Callable[..., Tensor], x: Tensor, *inputs: Any) -> Tensor:
        """layer(x, *inputs), which may lie in the memory of an earlier result."""
        room = torch.empty_like(x) if self._spare is None else self._spare
        y = layer(x, *inputs, scratch=Scratch(self._projected, room))
        if y.data_ptr() != room.data_ptr():
            self._spare = room
        else:
            self._spare = None if self._kept or x is self._first else x
        self._first = None
        return y


def _watched(stack: Layers) -> bool:
    """Whether anything sees what the layers are given, or what they give."""
    everywhere = torch.nn.modules.module
    if everywhere._global_forward_hooks or everywhere._global_forward_pre_hooks:
        return True
    return any(layer._forward_hooks or layer._forward_pre_hooks for layer in stack)


def stacks(module: nn.Module) -> list[Layers]:
    """All stacks of layers inside a module."""
    return [part for part in module.modules() if isinstance(part, Layers)]
