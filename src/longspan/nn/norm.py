"""Layer normalization and its kin, by torch or the native core."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan import native

Norm = Callable[[int, float], nn.Module]
"""(width, eps) to a new norm: LayerNorm, RMSNorm, or one of them with options."""


class LayerNorm(nn.Module):
    """x (..., C), each row shifted and scaled to mean 0 and variance 1, times `weight`, plus `bias`.

    >>> LayerNorm(2, 1e-12)(torch.tensor([[1.0, 3.0]]))
    tensor([[-1.,  1.]], grad_fn=<NativeLayerNormBackward0>)
    """

    def __init__(self, width: int, eps: float, *, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None
        self.eps = eps

    def forward(self, x: Tensor, into: Tensor | None = None) -> Tensor:
        """With `into`, which may be x, the result is written there, and nothing may be differentiated."""
        if _natively(x, self.weight, into):
            into = torch.empty_like(x) if into is None else into
            native.layer_norm(x, self.weight, self.bias, self.eps, into=into)
            return into
        y = F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)
        return y if into is None else into.copy_(y)

    def extra_repr(self) -> str:
        return f"{len(self.weight)}, eps={self.eps}" + ("" if self.bias is not None else ", bias=False")


class RMSNorm(nn.Module):
    """x (..., C), each row divided by its root mean square, times `weight` (Zhang & Sennrich 2019).

    With `shift` 1 the weight is kept as its distance from 1, as Gemma does; sums are taken in float32.

    >>> RMSNorm(2, 1e-12)(torch.tensor([[1.0, 7.0]])).detach()
    tensor([[0.2000, 1.4000]])
    """

    def __init__(self, width: int, eps: float, *, shift: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((width,), 1.0 - shift))
        self.eps, self.shift = eps, shift

    def forward(self, x: Tensor, into: Tensor | None = None) -> Tensor:
        """As that of LayerNorm."""
        weight = self.weight + self.shift if self.shift else self.weight
        if _natively(x, weight, into):
            into = torch.empty_like(x) if into is None else into
            native.layer_norm(x, weight, None, self.eps, centered=False, into=into)
            return into
        rows = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
        y = F.rms_norm(rows, weight.shape, None, self.eps)
        late = self.weight.to(y.dtype) + self.shift  # Gemma rounds after the product, others before
        y = (y * late).to(x.dtype) if self.shift else y.to(x.dtype) * weight
        return y if into is None else into.copy_(y)

    def extra_repr(self) -> str:
        return f"{len(self.weight)}, eps={self.eps}" + (f", shift={self.shift}" if self.shift else "")


def _natively(x: Tensor, weight: Tensor, into: Tensor | None) -> bool:
    """Whether the native core computes the norm of x."""
    if torch.is_grad_enabled() or (into is not None and into.dtype != x.dtype):
        return False
    plain = native.reads(x) and x.dim() == 2 and x.stride(1) == 1
    return plain and x.dtype == weight.dtype == torch.float32 and native.serves_linear(x.dtype)
