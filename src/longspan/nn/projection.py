"""What may follow the pooling of a document's vector: a linear layer and an activation."""

import torch
from torch import Tensor, nn

from longspan.errors import one_of
from longspan.nn.activations import ACTIVATIONS, Activation
from longspan.nn.linear import linear, new_linear

KINDS: dict[str, Activation | None] = {
    "identity": None,
    "sigmoid": torch.sigmoid,
    **{name: ACTIVATIONS[name] for name in ("gelu", "relu", "silu", "tanh")},
}
"""Activations that it may have."""


class Projection(nn.Module):
    """x (B, inputs) -> act(linear(x)), (B, outputs): the Dense module of sentence-transformers.

    >>> Projection(3, 5, bias=False)(torch.ones(2, 3)).shape
    torch.Size([2, 5])
    """

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True, act: str = "identity") -> None:
        super().__init__()
        self.linear = new_linear(inputs, outputs, bias=bias)
        self.act = one_of("activation", act, KINDS)

    def forward(self, x: Tensor) -> Tensor:
        y = linear(self.linear, x.to(self.linear.weight.dtype), then=KINDS[self.act])
        return y.to(torch.promote_types(x.dtype, y.dtype))
