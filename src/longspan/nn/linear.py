"""The linear layer: torch's, but half types are widened on a CPU, and results can go to reused memory."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Linear(nn.Module):
    """x (N, in) to (N, out).

    On a CPU bfloat16 and float16 weights are stored so and computed with in float32: torch's own products of
    these types are many times slower where the processor has none, and trap on some that claim to have them.

    >>> Linear(3, 2)(torch.ones(5, 3)).shape
    torch.Size([5, 2])
    """

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs)) if bias else None

    def forward(self, x: Tensor, into: Tensor | None = None) -> Tensor:
        """The result, written to `into` where that is given; nothing may be differentiated then."""
        weight, bias = wide(self.weight), None if self.bias is None else wide(self.bias)
        if into is None or weight.dtype != x.dtype:
            result = F.linear(wide(x), weight, bias).to(x.dtype)
            return result if into is None else into.copy_(result)
        if bias is None:
            return torch.mm(x, weight.t(), out=into)
        return torch.addmm(bias, x, weight.t(), out=into)

    def extra_repr(self) -> str:
        outputs, inputs = self.weight.shape
        return f"{inputs}, {outputs}" + (", bias=False" if self.bias is None else "")


def wide(x: Tensor) -> Tensor:
    """x in float32 if it is of a half type on a CPU."""
    return x.float() if x.device.type == "cpu" and x.dtype in (torch.bfloat16, torch.float16) else x
