"""Linear layers in int8: a scale for each weight row, and a scale and a middle for each token it reads."""

import warnings

import torch
from torch import Tensor, nn

from longspan.errors import BackendError, bad
from longspan.nn.layer import EncoderLayer
from longspan.nn.linear import Linear, wide
from longspan.nn.rows import ROWS

STEPS = 64
"""Activations go from -64 to 64: the product of two pairs still fits the 16 bits that AVX2 adds them in."""
WEIGHT_STEPS = 127
SMALLEST = 1e-30
"""Rows that are all of one value are scaled by this, lest they are divided by 0."""


class QuantisedLinear(nn.Module):
    """x (N, in) to (N, out), for reading only; a quarter of the memory of a float32 Linear.

    Products are summed in whole numbers, which is exact, and a row's scale and middle are its own: a row's
    result has the same bits whatever rows stand beside it.

    >>> layer = Linear(3, 2)
    >>> layer.weight.data.fill_(0.5).shape
    torch.Size([2, 3])
    >>> with torch.no_grad():
    ...     QuantisedLinear(layer)(torch.tensor([[1.0, 1.0, -1.0]]))
    tensor([[0.5000, 0.5000]])
    """

    bias: Tensor
    totals: Tensor
    "Sums of the rounded weight rows, for the middle of a token: small values far from it then cancel."

    def __init__(self, linear: Linear) -> None:
        super().__init__()
        weight = wide(linear.weight.detach())
        outputs, self.inputs = weight.shape
        scales = weight.abs().amax(1).clamp_(min=SMALLEST).double() / WEIGHT_STEPS
        zeros = torch.zeros(outputs, dtype=torch.long)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch means to move these types to another package
            whole = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
        self._packed = torch.ops.quantized.linear_prepack(whole, None)
        bias = torch.zeros(outputs) if linear.bias is None else wide(linear.bias.detach()).clone()
        self.register_buffer("bias", bias, persistent=False)
        self.register_buffer("totals", whole.dequantize().sum(1), persistent=False)

    def forward(self, x: Tensor, into: Tensor | None = None) -> Tensor:
        """The result, written to `into` where that is given."""
        if torch.is_grad_enabled() and x.requires_grad:
            raise BackendError(
                "int8 layers cannot be trained. Read under torch.no_grad(), "
                "or train in float32 and load the result with precision='int8'."
            )
        result = x.new_empty(len(x), len(self.bias)) if into is None else into
        for start in range(0, len(x), ROWS):  # in pieces, whose intermediates stay in the cache
            rows = wide(x[start : start + ROWS])
            low, high = rows.aminmax(dim=1, keepdim=True)
            middle, reach = (low + high) / 2, ((high - low) / 2).clamp_(min=SMALLEST)
            # Rounded here, since torch's own rounding may differ at the end of a vector; and no operator that
            # fuses a product and a sum in some lanes but not in others.
            steps = (rows - middle).mul_(STEPS / reach).round_()
            sums = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
                steps, 1.0, STEPS, self._packed
            )
            constant = (middle * self.totals).add_(self.bias)
            result[start : start + ROWS] = sums.mul_(reach / STEPS).add_(constant)
        return result

    def extra_repr(self) -> str:
        return f"{self.inputs}, {len(self.bias)}, int8"


def quantise(model: nn.Module) -> nn.Module:
    """`model` itself, with the linear layers of its encoder layers in int8.

    Embeddings, norms, heads, and Longformer's projections of global rows, which read few rows or have their
    weights read directly, stay as they are.
    """
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        raise BackendError("int8 needs torch's fbgemm kernels, which only x86 processors have. Use float32.")
    for layer in [module for module in model.modules() if isinstance(module, EncoderLayer)]:
        for owner, name in (
            (layer.attention, "qkv"),
            (layer.attention, "out"),
            (layer.feed_forward, "up"),
            (layer.feed_forward, "down"),
        ):
            linear = getattr(owner, name)
            if isinstance(linear, Linear):
                if linear.weight.device.type != "cpu":
                    raise bad("device", "the CPU for int8", str(linear.weight.device), "Load it there.")
                setattr(owner, name, QuantisedLinear(linear))
    return model


def is_quantised(model: nn.Module) -> bool:
    """Whether `model` has int8 layers.

    >>> is_quantised(Linear(3, 2))
    False
    """
    return any(isinstance(module, QuantisedLinear) for module in model.modules())
