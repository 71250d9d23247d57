"""Linear layers in int8: each weight row and each token has a scale of its own."""

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from longspan import native
from longspan.errors import BackendError, bad
from longspan.nn.activations import Activation
from longspan.nn.linear import ALL, after, natively, wide
from longspan.nn.lora import LoraLinear
from longspan.nn.rows import ROWS

STEPS = 64
"""In torch's kernels activations go from -64 to 64: two products still fit the 16 bits that AVX2 adds in."""
WEIGHT_STEPS = 127
SMALLEST = 1e-30
"""Rows that are all of one value are scaled by this, lest they are divided by 0."""


class QuantizedLinear(nn.Module):
    """x (N, in) to (N, out), for reading only; a quarter of the memory of a float32 Linear.

    The native core multiplies with activations of 13 to 16 bits, or of 8 with the VNNI instructions of the
    processor; torch's kernels, where the core is missing, with 7. Products are summed in whole numbers, which
    is exact, and a row's scale is its own: a row's result has the same bits whatever rows stand beside it.

    >>> layer = nn.Linear(3, 2)
    >>> layer.weight.data.fill_(0.5).shape, layer.bias.data.fill_(0).shape
    (torch.Size([2, 3]), torch.Size([2]))
    >>> with torch.no_grad():
    ...     QuantizedLinear(layer)(torch.tensor([[1.0, 1.0, -1.0]]))
    tensor([[0.5000, 0.5000]])
    """

    weight: Tensor
    scales: Tensor
    bias: Tensor

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = wide(linear.weight.detach())
        outputs, self.inputs = weight.shape
        scales = weight.abs().amax(1).clamp_(min=SMALLEST) / WEIGHT_STEPS
        bias = torch.zeros(outputs) if linear.bias is None else wide(linear.bias.detach()).clone()
        self.register_buffer("bias", bias, persistent=False)
        self._torch = None if native.serves_linear(torch.int8) else TorchBytes(weight, scales)
        if self._torch is None:
            whole = (weight / scales[:, None]).round_().to(torch.int8)
            self.register_buffer("weight", whole, persistent=False)
            self.register_buffer("scales", scales, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.fused(x, None, ALL, then=None, times=None, plus=None)

    def fused(
        self,
        x: Tensor,
        into: Tensor | None,
        rows: slice,
        *,
        then: Activation | None,
        times: Tensor | None,
        plus: Tensor | None,
    ) -> Tensor:
        """then(x W' + b) * times + plus of some outputs, written to `into` where that is given."""
        if torch.is_grad_enabled() and x.requires_grad:
            raise BackendError(
                "int8 layers cannot be trained. Read under torch.no_grad(), "
                "or train in float32 and load the result with precision='int8'."
            )
        if self._torch is not None:
            return after(self._torch(x, wide(self.bias))[:, rows], then, times, plus, into)
        weight, scales, bias = self.weight[rows], wide(self.scales[rows]), wide(self.bias[rows])
        return natively(x, weight, bias, scales=scales, into=into, then=then, times=times, plus=plus)

    def extra_repr(self) -> str:
        return f"{self.inputs}, {len(self.bias)}, int8"


class TorchBytes:
    """Products by torch's fbgemm kernels: rows in steps around a middle, within 7 bits."""

    def __init__(self, weight: Tensor, scales: Tensor) -> None:
        if "fbgemm" not in torch.backends.quantized.supported_engines:
            raise BackendError("int8 needs longspan's native core or torch's fbgemm kernels. Use float32.")
        zeros = torch.zeros(len(weight), dtype=torch.long)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch means to move these types to another package
            whole = torch.quantize_per_channel(weight, scales.double(), zeros, 0, torch.qint8)
        self.packed: Any = torch.ops.quantized.linear_prepack(whole, None)
        self.totals = whole.dequantize().sum(1)
        "Sums of the rounded weight rows, for the middle of a token: small values far from it then cancel."

    def __call__(self, x: Tensor, bias: Tensor) -> Tensor:
        """The layer's result."""
        result = x.new_empty(len(x), len(bias))
        for start in range(0, len(x), ROWS):  # in pieces, whose intermediates stay in the cache
            rows = wide(x[start : start + ROWS])
            low, high = rows.aminmax(dim=1, keepdim=True)
            middle, reach = (low + high) / 2, ((high - low) / 2).clamp_(min=SMALLEST)
            # Rounded here, since torch's own rounding may differ at the end of a vector; and no operator that
            # fuses a product and a sum in some lanes but not in others.
            steps = (rows - middle).mul_(STEPS / reach).round_()
            sums = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
                steps, 1.0, STEPS, self.packed
            )
            constant = (middle * self.totals).add_(bias)
            result[start : start + ROWS] = sums.mul_(reach / STEPS).add_(constant)
        return result


def quantize(model: nn.Module) -> nn.Module:
    """`model` itself, with those linear layers in int8 that its encoder layers list as `int8_paths`.

    Embeddings, norms, heads, and projections that see few rows or are read as matrices stay as they are.
    """
    for layer in list(model.modules()):
        for path in getattr(layer, "int8_paths", ()):
            owner, _, name = path.rpartition(".")
            linear = layer.get_submodule(path)
            if isinstance(linear, LoraLinear):
                raise bad("model", "without an adapter", "with one", "merge_and_unload(model) first.")
            if isinstance(linear, nn.Linear):
                if linear.weight.device.type != "cpu":
                    raise bad("device", "the CPU for int8", str(linear.weight.device), "Load it there.")
                setattr(layer.get_submodule(owner), name, QuantizedLinear(linear))
    return model


def is_quantized(model: nn.Module) -> bool:
    """Whether `model` has int8 layers.

    >>> is_quantized(nn.Linear(3, 2))
    False
    """
    return any(isinstance(module, QuantizedLinear) for module in model.modules())
