"""The linear layer, by torch or the native core; half types are widened on a CPU, memory can be reused."""

from types import ModuleType

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan import native as compiled
from longspan.nn.activations import Activation, gelu_tanh

PAGE = 1024
"""Floats. Rows a multiple of a page apart fall on the same few lines of the cache, and are read slowly."""
FUSED: dict[Activation | None, int] = {None: 0, F.gelu: 1, gelu_tanh: 2, F.relu: 3, F.silu: 4}
"""Activations that the native core applies, as csrc/longspan.h numbers them."""


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

    def forward(
        self,
        x: Tensor,
        into: Tensor | None = None,
        *,
        then: Activation | None = None,
        plus: Tensor | None = None,
    ) -> Tensor:
        """then(x W' + b) + plus; with `into` it is written there, and nothing may be differentiated."""
        weight, bias = wide(self.weight), None if self.bias is None else wide(self.bias)
        if not torch.is_grad_enabled() and native(x, weight) is not None:
            return natively(x, weight, bias, into=into, then=then, plus=plus)
        if into is not None and weight.dtype == x.dtype:
            if bias is None:
                return after(torch.mm(x, weight.t(), out=into), then, plus, into)
            return after(torch.addmm(bias, x, weight.t(), out=into), then, plus, into)
        return after(F.linear(wide(x), weight, bias).to(x.dtype), then, plus, into)

    def extra_repr(self) -> str:
        outputs, inputs = self.weight.shape
        return f"{inputs}, {outputs}" + (", bias=False" if self.bias is None else "")


def wide(x: Tensor) -> Tensor:
    """x in float32 if it is of a half type on a CPU."""
    return x.float() if x.device.type == "cpu" and x.dtype in (torch.bfloat16, torch.float16) else x


def after(y: Tensor, then: Activation | None, plus: Tensor | None, into: Tensor | None = None) -> Tensor:
    """then(y) + plus, in `into` where that is given; y may be used up."""
    y = y if then is None else then(y)
    y = y if plus is None else y.add_(plus) if then is None or not torch.is_grad_enabled() else y + plus
    return y if into is None or y is into else into.copy_(y)


def native(x: Tensor, weight: Tensor) -> ModuleType | None:
    """The native core, if it is built and computes x (N, in) with these weights faster than torch."""
    fits = x.dim() == 2 and x.shape[1] == weight.shape[1] and weight.is_contiguous()
    known = x.dtype != torch.float64 and weight.dtype in (torch.float32, torch.int8)
    if not fits or not known or not compiled.reads(x):
        return None
    return compiled.core() if compiled.serves_linear(weight.dtype) else None


def natively(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    scales: Tensor | None = None,
    into: Tensor | None,
    then: Activation | None,
    plus: Tensor | None,
) -> Tensor:
    """then(x W' + b) + plus by the native core: a row has the same bits whatever rows stand beside it."""
    fused, outputs = then in FUSED, len(weight)
    room = into
    if room is None or room.dtype != torch.float32 or room.stride(1) != 1:
        apart = then is not None and outputs % PAGE == 0  # read by another layer, not returned
        room = torch.empty(len(x), outputs + 16 * apart)[:, :outputs]
    compiled.linear(
        _rows(x),
        weight,
        bias,
        scales=scales,
        plus=None if plus is None or not fused else _rows(plus),
        act=FUSED.get(then, 0),
        into=room,
    )
    return after(room.to(x.dtype), None if fused else then, None if fused else plus, into)


def _rows(x: Tensor) -> Tensor:
    x = wide(x)
    return x if x.stride(1) == 1 else x.contiguous()
