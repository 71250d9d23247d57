"""Heads that make something of every token beside a document's vector: its weight, its own vector."""

from typing import NamedTuple

from torch import Tensor
from torch.nn import functional as F


class Projection(NamedTuple):
    """A linear layer as it is stored."""

    weight: Tensor
    "(D, C)"
    bias: Tensor
    "(D,)"

    def __call__(self, x: Tensor) -> Tensor:
        """x (N, C) -> (N, D), in float32."""
        return F.linear(x.float(), *(part.to(x.device).float() for part in self))


class TokenHeads(NamedTuple):
    """What a folder holds beside the model (BGE-M3, Chen et al. 2024); None: nothing of the kind."""

    sparse: Projection | None = None
    "(1, C): how much a token says about its text."
    vectors: Projection | None = None
    "(D, C): a token's own vector, to be compared with those of another text."
