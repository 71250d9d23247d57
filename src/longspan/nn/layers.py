"""A stack of layers, and what it keeps for the backward pass."""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from longspan.nn.rows import ROWS, Scratch, own_pages, share


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

    A layer reads x in one place and leaves its result in another; then they change places. Those that need
    only keys and values of all rows at once leave it in the place of x. What somebody sees by a hook keeps
    memory of its own.
    """

    def __init__(self, stack: Layers, embeddings: nn.Module, x: Tensor, projections: int) -> None:
        seen, keys = _watched(*embeddings.modules()), _key_columns(stack, x)
        self._in_place = keys is not None and not seen
        if keys is not None and not seen:
            self._scratch = Scratch(own_pages(x, len(x), keys), x)
            return
        size, columns = x.numel(), projections * x.shape[1]
        memory = own_pages(x, len(x) * columns + size)
        self._second = memory[len(x) * columns :].view_as(x)
        self._scratch = Scratch(memory[: len(x) * columns].view(len(x), columns), self._second)
        self._first = own_pages(x, *x.shape) if seen else x
        self._kept = _watched(*stack)

    def scratch_for(self, x: Tensor) -> Scratch:
        """What the layer that reads x writes to; its result may be written over by the next layer but one."""
        if self._in_place:
            self._scratch.context = x
        elif self._kept:
            self._scratch.context = own_pages(x, *x.shape)
        else:
            self._scratch.context = self._first if self._holds(x) else self._second
        return self._scratch

    def leave(self, x: Tensor) -> Tensor:
        """The last result, which holds no memory but its own."""
        return self._first.copy_(x) if not self._in_place and self._holds(x) else x

    def _holds(self, x: Tensor) -> bool:
        return share(x, self._second)


def _key_columns(stack: Layers, x: Tensor) -> int | None:
    """Columns of keys and values, if all layers can work in the place of x; None if they cannot."""
    if len(x) <= ROWS or stack.training or _watched(*stack.modules()):
        return None
    columns = {getattr(layer, "key_columns", None) for layer in stack}
    return columns.pop() if len(columns) == 1 else None


def _watched(*modules: nn.Module) -> bool:
    """Whether anything sees what modules are given, or what they give."""
    everywhere = torch.nn.modules.module
    if everywhere._global_forward_hooks or everywhere._global_forward_pre_hooks:
        return True
    return any(module._forward_hooks or module._forward_pre_hooks for module in modules)


def stacks(module: nn.Module) -> list[Layers]:
    """All stacks of layers inside a module."""
    return [part for part in module.modules() if isinstance(part, Layers)]
