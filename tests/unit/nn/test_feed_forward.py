"""Feed-forward blocks: gated ones read both halves in either order, and what they compute while reading."""

import pytest
import torch
from torch.nn import functional as F

from longspan.nn.feed_forward import GatedFeedForward
from longspan.nn.quantized import QuantizedLinear


def drawn(*, gate_first: bool, act: str = "gelu", bias: bool = False) -> GatedFeedForward:
    torch.manual_seed(3)
    block = GatedFeedForward(37, 29, act, gate_first=gate_first, bias=bias, down_bias=bias)
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return block.eval()


@pytest.mark.parametrize("act", ["gelu", "silu", "gelu_pytorch_tanh", "tanh"])
@pytest.mark.parametrize("gate_first", [True, False])
@pytest.mark.parametrize("rows", [0, 1, 7, 70])
def test_a_gate_multiplies_the_other_half(act: str, gate_first: bool, rows: int) -> None:
    block = drawn(gate_first=gate_first, act=act, bias=gate_first)
    x, plus = torch.randn(rows, 37), torch.randn(rows, 37)
    wide = block.double()
    gate, value = wide.up(x.double()).chunk(2, 1) if gate_first else wide.up(x.double()).chunk(2, 1)[::-1]
    expected = wide.down(wide.act(gate) * value) + plus.double()
    block = block.float()
    trained = block(x, plus=plus)
    with torch.no_grad():
        read = block(x, torch.empty(rows, 37), plus=plus)
    for found in (trained, read):
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


def test_int8_halves_have_scales_of_their_own() -> None:
    block, x = drawn(gate_first=True), torch.randn(50, 37)
    block.up.weight.data[:29] *= 100  # a loud gate must not drown what it multiplies
    with torch.no_grad():
        expected = block(x)
        for name in block.int8_layers:
            setattr(block, name, QuantizedLinear(getattr(block, name)))
        found = block(x)
    assert float(F.cosine_similarity(found, expected).min()) > 0.999


def test_dropout_acts_on_the_product_while_training() -> None:
    block = drawn(gate_first=True)
    block.dropout = 0.5
    with torch.no_grad():
        calm, x = block(torch.ones(4, 37)), torch.ones(4, 37)
        assert torch.equal(block(x), calm)
        assert not torch.equal(block.train()(x), calm)
