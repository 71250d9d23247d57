"""Feed-forward blocks: through a wider layer and back, plain or gated."""

from torch import Tensor, nn
from torch.nn import functional as F

from longspan.nn.activations import activation
from longspan.nn.linear import Fused, is_plain, linear, new_linear
from longspan.nn.rows import Scratch, writes_over


class FeedForward(nn.Module):
    """x (N, C) -> down(act(up(x))), and what is to be added."""

    int8_layers: tuple[str, ...] = ("up", "down")

    def __init__(self, width: int, inner: int, act: str, *, bias: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        self.up, self.down = new_linear(width, inner, bias=bias), new_linear(inner, width, bias=bias)
        self.inner, self.act, self.dropout = inner, activation(act), dropout

    def forward(
        self,
        x: Tensor,
        into: Tensor | None = None,
        *,
        plus: Tensor | None = None,
        scratch: Scratch | None = None,
    ) -> Tensor:
        room = None if scratch is None else scratch.piece("inner", len(x), self.inner)
        inner = F.dropout(linear(self.up, x, room, then=self.act), self.dropout, self.training)
        return linear(self.down, inner, into, plus=plus)


class GatedFeedForward(nn.Module):
    """x (N, C) -> down(act(gate(x)) * value(x)), and what is to be added (Shazeer 2020).

    `up` holds both: the rows of the gate first, or last.

    >>> import torch
    >>> GatedFeedForward(4, 3, "silu")(torch.ones(5, 4)).shape
    torch.Size([5, 4])
    """

    int8_layers: tuple[str, ...] = ("up", "down")

    def __init__(
        self,
        width: int,
        inner: int,
        act: str,
        *,
        gate_first: bool = True,
        bias: bool = False,
        down_bias: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.up, self.down = new_linear(width, 2 * inner, bias=bias), new_linear(inner, width, bias=down_bias)
        halves = slice(0, inner), slice(inner, 2 * inner)
        self.gate, self.value = halves if gate_first else halves[::-1]
        self.inner, self.act, self.dropout = inner, activation(act), dropout

    def forward(
        self,
        x: Tensor,
        into: Tensor | None = None,
        *,
        plus: Tensor | None = None,
        scratch: Scratch | None = None,
    ) -> Tensor:
        if writes_over() and (is_plain(self.up) or isinstance(self.up, Fused)) and not self._drops:
            room = None if scratch is None else scratch.piece("inner", len(x), self.inner)
            gate = linear(self.up, x, room, rows=self.gate, then=self.act)
            inner = linear(self.up, x, gate, rows=self.value, times=gate)
        else:
            both = linear(self.up, x)
            inner = F.dropout(self.act(both[:, self.gate]) * both[:, self.value], self.dropout, self.training)
        return linear(self.down, inner, into, plus=plus)

    @property
    def _drops(self) -> bool:
        return self.training and self.dropout > 0.0
