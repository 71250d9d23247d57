"""Linear layers: torch's own modules, by the native core where that is faster, fused with what follows."""

from types import ModuleType
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan import native as compiled
from longspan.nn.activations import Activation, gelu_tanh
from longspan.nn.product import product, rows_of
from longspan.nn.rows import PAGE

FUSED: dict[Activation | None, int] = {None: 0, F.gelu: 1, gelu_tanh: 2, F.relu: 3, F.silu: 4}
"""Activations that the native core applies, as csrc/longspan.h numbers them."""


def new_linear(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    """A layer of zeros: torch would draw weights that are drawn again, or loaded.

    It is torch's own class, so whatever looks for linear layers (peft, quantize_dynamic) finds it.

    >>> new_linear(3, 2)(torch.ones(5, 3)).shape
    torch.Size([5, 2])
    """
    layer = nn.Linear.__new__(nn.Linear)
    nn.Module.__init__(layer)
    layer.in_features, layer.out_features = inputs, outputs
    layer.weight = nn.Parameter(torch.zeros(outputs, inputs))
    layer.register_parameter("bias", nn.Parameter(torch.zeros(outputs)) if bias else None)
    return layer


@runtime_checkable
class Fused(Protocol):
    """A layer with a way of its own to compute `linear`."""

    def fused(
        self,
        x: Tensor,
        into: Tensor | None,
        rows: slice,
        *,
        then: Activation | None,
        times: Tensor | None,
        plus: Tensor | None,
    ) -> Tensor: ...


@runtime_checkable
class Readable(Protocol):
    """A layer that says itself what its weights are."""

    def matrix(self) -> tuple[Tensor, Tensor | None]: ...


ALL = slice(None)


def linear(
    layer: nn.Module,
    x: Tensor,
    into: Tensor | None = None,
    *,
    rows: slice = ALL,
    then: Activation | None = None,
    times: Tensor | None = None,
    plus: Tensor | None = None,
) -> Tensor:
    """then(layer(x)) * times + plus, of the layer's outputs `rows`; x (N, in) to (N, out).

    With `into` it is written there, and nothing may be differentiated. A layer that was wrapped, or that
    somebody watches by a hook, is called; of others only the weights are read. On a CPU bfloat16 and float16
    weights are computed with in float32: torch's own products of these types are many times slower where the
    processor has none, and trap on some that claim to have them.
    """
    if is_plain(layer):
        assert isinstance(layer, nn.Linear)
        weight: Tensor = layer.weight
        bias: Tensor | None = layer.bias
        if rows is not ALL:
            weight, bias = weight[rows], None if bias is None else bias[rows]
        return by_weight(x, weight, bias, into, then=then, times=times, plus=plus)
    if isinstance(layer, Fused):
        return layer.fused(x, into, rows, then=then, times=times, plus=plus)
    return after(layer(x)[..., rows], then, times, plus, into)


def by_weight(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    into: Tensor | None = None,
    *,
    then: Activation | None = None,
    times: Tensor | None = None,
    plus: Tensor | None = None,
) -> Tensor:
    """then(x W' + b) * times + plus; x (N, in), W (out, in)."""
    weight, bias = wide(weight), None if bias is None else wide(bias)
    if native(x, weight) is not None:
        if not torch.is_grad_enabled():
            return natively(x, weight, bias, into=into, then=then, times=times, plus=plus)
        if into is None and not torch.is_autocast_enabled("cpu"):
            return after(product(wide(x), weight, bias).to(x.dtype), then, times, plus)
    if into is None or times is not None or weight.dtype != x.dtype:
        y = F.linear(wide(x), weight, bias).to(x.dtype)
    elif bias is None:
        y = torch.mm(x, weight.t(), out=into)
    else:
        y = torch.addmm(bias, x, weight.t(), out=into)
    return after(y, then, times, plus, into)


def matrix(layer: nn.Module, like: Tensor) -> tuple[Tensor, Tensor | None]:
    """The weight (out, in) and bias of a layer for rows like these (N, in), for those who read them.

    Of a layer that was wrapped, what it does to the rows of an identity.
    """
    if is_plain(layer):
        assert isinstance(layer, nn.Linear)
        return layer.weight, layer.bias
    if isinstance(layer, Readable):
        return layer.matrix()
    inputs = like.shape[-1]
    bias = layer(like.new_zeros(1, inputs))  # (1, out)
    columns = layer(torch.eye(inputs, dtype=like.dtype, device=like.device)) - bias  # (in, out)
    return columns.t(), bias.squeeze(0)


def is_plain(layer: nn.Module) -> bool:
    """Whether a layer's weights are all that it does: no adapter, no hook, no parametrization."""
    if type(layer) is not nn.Linear:
        return False
    watched = layer._forward_hooks, layer._forward_pre_hooks, layer._backward_hooks, layer._backward_pre_hooks
    return not any(watched)


def wide(x: Tensor) -> Tensor:
    """x in float32 if it is of a half type on a CPU."""
    return x.float() if x.device.type == "cpu" and x.dtype in (torch.bfloat16, torch.float16) else x


def after(
    y: Tensor,
    then: Activation | None,
    times: Tensor | None,
    plus: Tensor | None,
    into: Tensor | None = None,
) -> Tensor:
    """then(y) * times + plus, in `into` where that is given; y may be used up."""
    differentiated = torch.is_grad_enabled()
    y = y if then is None else then(y)
    if times is not None:
        y = y * times if differentiated else y.mul_(times)
    if plus is not None:
        y = y + plus if differentiated and (then is not None or times is not None) else y.add_(plus)
    return y if into is None or y is into else into.copy_(y)


def native(x: Tensor, weight: Tensor) -> ModuleType | None:
    """The native core, if it is built and computes x (N, in) with these weights faster than torch."""
    fits = x.dim() == 2 and x.shape[1] == weight.shape[1] and weight.is_contiguous()
    known = x.dtype != torch.float64 and weight.dtype in (torch.float32, torch.int8)
    if not fits or not known or not (compiled.reads(x) and compiled.reads(weight)):
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
    times: Tensor | None,
    plus: Tensor | None,
) -> Tensor:
    """then(x W' + b) * times + plus by the core: a row has the same bits whatever rows stand beside it."""
    fused, outputs = then in FUSED, len(weight)
    room = into
    if (
        room is None
        or room.dtype != torch.float32
        or room.stride(1) != 1
        or (not fused and times is not None)
    ):
        apart = then is not None and outputs % PAGE == 0  # read by another layer, not returned
        room = torch.empty(len(x), outputs + 16 * apart)[:, :outputs]
    compiled.linear(
        rows_of(wide(x)),
        weight,
        bias,
        scales=scales,
        times=None if times is None or not fused else rows_of(wide(times)),
        plus=None if plus is None or not fused else rows_of(wide(plus)),
        act=FUSED.get(then, 0),
        into=room,
    )
    rest = (None, None, None) if fused else (then, times, plus)
    return after(room.to(x.dtype), *rest, into)
