"""Self-attention over the pairs of a plan."""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor, nn

from longspan.engine.call import AnyPlan, attention
from longspan.engine.dropout import Dropout
from longspan.engine.terms import ScoreTable
from longspan.nn.linear import linear, new_linear
from longspan.nn.rows import Scratch, projected

Biases = tuple[ScoreTable, ...]
CacheUpdate = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class SelfAttention(nn.Module):
    """x (N, C) to the context of each row (N, C), before the output projection `out`.

    `biases` are added to scores, by the labels of the plan.
    `scratch` is memory for the work, where nothing is differentiated; x may lie in it.
    `cache` takes the keys and values of these rows and returns all that are seen, earlier ones included.
    """

    int8_layers: tuple[str, ...] = ("qkv", "out")

    def __init__(
        self, width: int, heads: int, *, bias: bool = True, out_bias: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.qkv = new_linear(width, 3 * width, bias=bias)
        self.out = new_linear(width, width, bias=out_bias)
        self.heads, self.dropout = heads, dropout

    def forward(
        self,
        x: Tensor,
        pairs: AnyPlan,
        biases: Biases = (),
        *,
        scratch: Scratch | None = None,
        cache: CacheUpdate | None = None,
    ) -> Tensor:
        q, k, v = (
            linear(self.qkv, x, projected(scratch)).view(x.shape[0], 3, self.heads, -1).unbind(1)
        )  # (N, 3C) -> (N, H, D)
        k, v = (k, v) if cache is None else cache(k, v)
        out = None if scratch is None else scratch.for_heads(self.heads, x.shape[1])
        context = attention(q, k, v, pairs, terms=biases, dropout=fresh_dropout(self), out=out)
        return context.flatten(1)  # (N, H, D) -> (N, C)


class Dropping(Protocol):
    """A module that drops pairs of its attention in training."""

    training: bool
    dropout: float


def fresh_dropout(module: Dropping) -> Dropout | None:
    """Dropout with a seed drawn from torch's generator, in training; None otherwise."""
    if not module.training or module.dropout == 0.0:
        return None
    return Dropout(module.dropout, torch.randint(2**63 - 1, ()))
