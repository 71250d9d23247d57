"""One encoder layer with its norms after the residuals, as in BERT."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from longspan.nn.activations import activation
from longspan.nn.attention import LongformerAttention, SelfAttention
from longspan.nn.linear import Linear
from longspan.nn.rows import by_rows


class FeedForward(nn.Module):
    """x (N, C) through a wider layer and back."""

    def __init__(self, width: int, inner: int, act: str) -> None:
        super().__init__()
        self.up, self.down = Linear(width, inner), Linear(inner, width)
        self.act = activation(act)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.act(self.up(x)))  # type: ignore[no-any-return]


class EncoderLayer(nn.Module):
    """x (N, C) -> norm(x + out(attention(x))) -> norm(x + feed_forward(x))."""

    def __init__(
        self,
        attention: SelfAttention | LongformerAttention,
        width: int,
        inner: int,
        *,
        act: str,
        eps: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = nn.LayerNorm(width, eps)
        self.feed_forward = FeedForward(width, inner, act)
        self.feed_forward_norm = nn.LayerNorm(width, eps)
        self.dropout = dropout

    def forward(self, x: Tensor, *seen: Any, scratch: Tensor | None = None) -> Tensor:
        """`seen` is what the attention asks for: its plan, and Longformer's global rows."""
        return by_rows(self._rest, x, self.attention(x, *seen, scratch=scratch))

    def _rest(self, x: Tensor, context: Tensor) -> Tensor:
        """All that is done to each row by itself."""
        x = self.attention_norm(self._drop(self.attention.out(context)).add_(x))
        return self.feed_forward_norm(self._drop(self.feed_forward(x)).add_(x))  # type: ignore[no-any-return]

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)
