"""Layer normalization, by torch or the native core."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan import native


class LayerNorm(nn.Module):
    """x (..., C), each row shifted and scaled to mean 0 and variance 1, times `weight`, plus `bias`.

    >>> LayerNorm(2, 1e-12)(torch.tensor([[1.0, 3.0]]))
    tensor([[-1.,  1.]], grad_fn=<NativeLayerNormBackward0>)
    """

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.eps = eps

    def forward(self, x: Tensor, into: Tensor | None = None) -> Tensor:
        """With `into`, which may be x, the result is written there, and nothing may be differentiated."""
        if not torch.is_grad_enabled() and self._native(x) and (into is None or into.dtype == x.dtype):
            into = torch.empty_like(x) if into is None else into
            native.layer_norm(x, self.weight, self.bias, self.eps, into=into)
            return into
        y = F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)
        return y if into is None else into.copy_(y)

    def _native(self, x: Tensor) -> bool:
        """Whether the native core computes this."""
        plain = native.reads(x) and x.dim() == 2 and x.stride(1) == 1
        return plain and x.dtype == self.weight.dtype == torch.float32 and native.serves_linear(x.dtype)

    def extra_repr(self) -> str:
        return f"{len(self.weight)}, eps={self.eps}"
