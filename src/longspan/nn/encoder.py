"""One encoder layer, its norms after the residuals or before the blocks."""

from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.nn import functional as F

from longspan.nn.activations import activation
from longspan.nn.linear import Linear
from longspan.nn.norm import LayerNorm
from longspan.nn.rows import by_rows

FEED_FORWARD = ("feed_forward.up", "feed_forward.down")


class LayerConfig(NamedTuple):
    """What the layers of a model have in common."""

    width: int
    act: str
    eps: float
    dropout: float
    activation_dropout: float = 0.0
    norm_first: bool = False


class FeedForward(nn.Module):
    """x (N, C) through a wider layer and back, and what is to be added."""

    def __init__(self, width: int, inner: int, act: str, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.up, self.down = Linear(width, inner), Linear(inner, width)
        self.act, self.dropout = activation(act), dropout

    def forward(self, x: Tensor, into: Tensor | None = None, *, plus: Tensor | None = None) -> Tensor:
        inner = F.dropout(self.up(x, then=self.act), self.dropout, self.training)
        return self.down(inner, into, plus=plus)  # type: ignore[no-any-return]


class EncoderLayer(nn.Module):
    """x (N, C) -> norm(x + out(attention(x))) -> norm(x + feed_forward(x)).

    With `norm_first` x -> x + out(attention(norm(x))) -> x + feed_forward(norm(x)); the `final` layer has one
    more norm at its end.
    """

    def __init__(self, like: LayerConfig, attention: nn.Module, inner: int, *, final: bool = False) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = LayerNorm(like.width, like.eps)
        self.feed_forward = FeedForward(like.width, inner, like.act, dropout=like.activation_dropout)
        self.feed_forward_norm = LayerNorm(like.width, like.eps)
        self.closing_norm = LayerNorm(like.width, like.eps) if like.norm_first and final else None
        self.dropout, self.norm_first = like.dropout, like.norm_first

    @property
    def int8_paths(self) -> tuple[str, ...]:
        """Its linear layers that may be computed in int8."""
        own: tuple[str, ...] = getattr(self.attention, "int8_layers", ())
        return (*(f"attention.{name}" for name in own), *FEED_FORWARD)

    def forward(self, x: Tensor, *inputs: Any, scratch: Tensor | None = None) -> Tensor:
        """`inputs` are what the attention takes beside x: its plan, and perhaps global rows and biases."""
        normed = self.attention_norm(x) if self.norm_first else x
        return by_rows(self._rest, x, self.attention(normed, *inputs, scratch=scratch))

    def _rest(self, x: Tensor, context: Tensor, into: Tensor | None) -> Tensor:
        """Everything that is computed row by row."""
        dropout = self.dropout if self.training else 0.0
        x = residual(self.attention.get_submodule("out"), context, x, dropout)
        if self.norm_first:
            x = residual(self.feed_forward, self.feed_forward_norm(x), x, dropout, into)
            return x if self.closing_norm is None else self.closing_norm(x, into)
        x = self.attention_norm(x)
        y = residual(self.feed_forward, x, x, dropout, into)
        return self.feed_forward_norm(y, into)  # type: ignore[no-any-return]


def residual(step: nn.Module, x: Tensor, rest: Tensor, dropout: float, into: Tensor | None = None) -> Tensor:
    """step(x) + rest, written to `into` where that is given; dropout comes before the sum."""
    if not dropout:
        return step(x, into, plus=rest)  # type: ignore[no-any-return]
    y = F.dropout(step(x), dropout).add_(rest)
    return y if into is None else into.copy_(y)
