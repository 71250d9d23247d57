"""One encoder layer, its norms behind the residuals as in BERT, or before the blocks as in Pegasus."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from longspan.nn.activations import activation
from longspan.nn.attention import LongformerAttention, SelfAttention
from longspan.nn.linear import Linear
from longspan.nn.rows import by_rows


class FeedForward(nn.Module):
    """x (N, C) through a wider layer and back, and what is to be added."""

    def __init__(self, width: int, inner: int, act: str, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.up, self.down = Linear(width, inner), Linear(inner, width)
        self.act, self.dropout = activation(act), dropout

    def forward(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        inner = F.dropout(self.up(x, then=self.act), self.dropout, self.training)
        return self.down(inner, plus=plus)  # type: ignore[no-any-return]


class EncoderLayer(nn.Module):
    """x (N, C) -> norm(x + out(attention(x))) -> norm(x + feed_forward(x)).

    With `norm_first` x -> x + out(attention(norm(x))) -> x + feed_forward(norm(x)), and the last layer,
    which is `closing`, has one more norm behind it.
    """

    def __init__(
        self,
        attention: SelfAttention | LongformerAttention,
        width: int,
        inner: int,
        *,
        act: str,
        eps: float,
        dropout: float,
        activation_dropout: float = 0.0,
        norm_first: bool = False,
        closing: bool = False,
    ) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = nn.LayerNorm(width, eps)
        self.feed_forward = FeedForward(width, inner, act, dropout=activation_dropout)
        self.feed_forward_norm = nn.LayerNorm(width, eps)
        self.closing_norm = nn.LayerNorm(width, eps) if closing else None
        self.dropout, self.norm_first = dropout, norm_first

    def forward(self, x: Tensor, *seen: Any, scratch: Tensor | None = None) -> Tensor:
        """`seen` is what the attention asks for: its plan, and Longformer's global rows."""
        read = self.attention_norm(x) if self.norm_first else x
        return by_rows(self._rest, x, self.attention(read, *seen, scratch=scratch))

    def _rest(self, x: Tensor, context: Tensor) -> Tensor:
        """All that is done to each row by itself."""
        dropout = self.dropout if self.training else 0.0
        x = residual(self.attention.out, context, x, dropout)
        if self.norm_first:
            x = residual(self.feed_forward, self.feed_forward_norm(x), x, dropout)
            return x if self.closing_norm is None else self.closing_norm(x)
        x = self.attention_norm(x)
        return self.feed_forward_norm(residual(self.feed_forward, x, x, dropout))  # type: ignore[no-any-return]


def residual(step: nn.Module, x: Tensor, rest: Tensor, dropout: float) -> Tensor:
    """step(x) + rest; what is dropped is dropped before it is added."""
    if dropout:
        return F.dropout(step(x), dropout).add_(rest)
    return step(x, plus=rest)  # type: ignore[no-any-return]
