"""One encoder layer with its norms after the residuals, as in BERT."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from longspan.nn.activations import activation
from longspan.nn.attention import LongformerAttention, SelfAttention
from longspan.nn.linear import Linear
from longspan.nn.rows import by_rows


class FeedForward(nn.Module):
    """x (N, C) through a wider layer and back, and what is to be added."""

    def __init__(self, width: int, inner: int, act: str) -> None:
        super().__init__()
        self.up, self.down = Linear(width, inner), Linear(inner, width)
        self.act = activation(act)

    def forward(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        return self.down(self.up(x, then=self.act), plus=plus)  # type: ignore[no-any-return]


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
        dropout = self.dropout if self.training else 0.0
        x = self.attention_norm(residual(self.attention.out, context, x, dropout))
        return self.feed_forward_norm(residual(self.feed_forward, x, x, dropout))  # type: ignore[no-any-return]


def residual(step: nn.Module, x: Tensor, rest: Tensor, dropout: float) -> Tensor:
    """step(x) + rest; what is dropped is dropped before it is added."""
    if dropout:
        return F.dropout(step(x), dropout).add_(rest)
    return step(x, plus=rest)  # type: ignore[no-any-return]
