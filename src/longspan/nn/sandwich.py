"""An encoder layer whose blocks stand between two norms each."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan.nn.encoder import LayerConfig, int8_paths
from longspan.nn.linear import linear
from longspan.nn.rows import Scratch, apart, by_rows


class SandwichLayer(nn.Module):
    """x (N, C) -> x + norm(out(attention(norm(x)))) -> x + norm(feed_forward(norm(x))).

    The `final` layer has one more norm at its end.
    """

    def __init__(
        self, like: LayerConfig, attention: nn.Module, feed_forward: nn.Module, *, final: bool = False
    ) -> None:
        super().__init__()
        self.attention_norm = like.new_norm()
        self.attention = attention
        self.attention_out_norm = like.new_norm()
        self.feed_forward_norm = like.new_norm()
        self.feed_forward = feed_forward
        self.feed_forward_out_norm = like.new_norm()
        self.closing_norm = like.new_norm() if final else None
        self.dropout = like.dropout

    @property
    def int8_paths(self) -> tuple[str, ...]:
        """Its linear layers that may be computed in int8."""
        return int8_paths(self, "attention", "feed_forward")

    def forward(self, x: Tensor, *inputs: Any, scratch: Scratch | None = None) -> Tensor:
        """`inputs` are what the attention takes beside x."""
        room = None if scratch is None else scratch.context
        context = self.attention(self.attention_norm(x, room), *inputs, scratch=scratch)
        return by_rows(self._rest, x, context, apart(x, context, room))

    def _rest(self, x: Tensor, context: Tensor, room: Tensor, into: Tensor | None) -> Tensor:
        """Everything that is computed row by row."""
        y = self.attention_out_norm(linear(self.attention.get_submodule("out"), context))
        x = x + F.dropout(y, self.dropout, self.training)
        y = self.feed_forward_out_norm(self.feed_forward(self.feed_forward_norm(x)))
        y = F.dropout(y, self.dropout, self.training)
        x = x + y if into is None else torch.add(x, y, out=into)
        return x if self.closing_norm is None else self.closing_norm(x, into)
