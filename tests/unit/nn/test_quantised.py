"""int8 linear layers: near float32, exact in their sums, blind to batch mates, and for reading only."""

from pathlib import Path

import numpy as np
import pytest
import torch

import longspan
from longspan.errors import BackendError, InputError
from longspan.nn.linear import Linear
from longspan.nn.quantised import STEPS, WEIGHT_STEPS, QuantisedLinear, is_quantised, quantise
from unit.tasks.tiny import CORPUS, FAMILIES, reader

pytestmark = pytest.mark.skipif(
    "fbgemm" not in torch.backends.quantized.supported_engines, reason="torch has no fbgemm here"
)
SIZES = ((7, 13), (64, 48), (97, 31), (384, 5))


@pytest.fixture(autouse=True)
def _reading() -> object:
    with torch.no_grad():
        yield


def drawn(inputs: int, outputs: int, *, bias: bool = True) -> Linear:
    """A layer whose weight rows are of very different sizes."""
    torch.manual_seed(inputs)
    layer = Linear(inputs, outputs, bias=bias)
    layer.weight.copy_(torch.randn(outputs, inputs) * torch.logspace(-3, 1, outputs)[:, None])
    if layer.bias is not None:
        layer.bias.copy_(torch.randn(outputs))
    return layer


def by_hand(layer: Linear, x: torch.Tensor) -> torch.Tensor:
    """The definition, in float64."""
    scale = layer.weight.abs().amax(1).double()[:, None] / WEIGHT_STEPS
    middle, reach = (x.amax(1) + x.amin(1))[:, None] / 2, (x.amax(1) - x.amin(1))[:, None] / 2
    steps = ((x - middle) * (STEPS / reach)).round().double()
    weight = (layer.weight.double() / scale).round()
    sums = steps @ weight.T
    constant = middle.double() * (weight * scale).sum(1)
    bias = 0.0 if layer.bias is None else layer.bias.double()
    return sums * scale.T * (reach.double() / STEPS) + constant + bias


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("inputs", "outputs"), SIZES)
def test_it_computes_its_definition(inputs: int, outputs: int, bias: bool) -> None:
    layer, x = drawn(inputs, outputs, bias=bias), torch.randn(67, inputs)
    torch.testing.assert_close(
        QuantisedLinear(layer)(x).double(), by_hand(layer, x), rtol=1e-5, atol=1e-5 * float(x.abs().max())
    )


def test_sums_do_not_saturate_at_the_largest_values() -> None:
    layer = Linear(3072, 3, bias=False)
    layer.weight.copy_(torch.tensor([[1.0], [-1.0], [0.0]]).expand(3, 3072))
    x = torch.ones(2, 3072)
    x[:, -1] = -1.0
    found = QuantisedLinear(layer)(x * torch.tensor([[1.0], [-1.0]]))
    assert found.tolist() == [[3070.0, -3070.0, 0.0], [-3070.0, 3070.0, 0.0]]


@pytest.mark.parametrize(("inputs", "outputs"), SIZES)
def test_a_row_has_the_same_bits_whatever_stands_beside_it(inputs: int, outputs: int) -> None:
    layer, x = QuantisedLinear(drawn(inputs, outputs)), torch.randn(1500, inputs)
    x[700] *= 1e6  # a loud mate
    whole = layer(x)
    for start, end in ((0, 1), (699, 701), (3, 70), (1023, 1025), (1100, 1500)):
        assert torch.equal(layer(x[start:end]), whole[start:end])
    assert torch.equal(layer(x.flip(0)).flip(0), whole)


def test_a_loud_row_does_not_drown_a_quiet_one() -> None:
    layer, x = drawn(64, 48), torch.randn(2, 64)
    x[1] *= 1e-6
    expected = QuantisedLinear(layer)(x * torch.tensor([[1.0], [1e6]])) - layer.bias
    torch.testing.assert_close((QuantisedLinear(layer)(x) - layer.bias)[0], expected[0])
    assert torch.cosine_similarity(torch.mv(layer.weight, x[1]), expected[1], 0) > 0.999


def test_rows_of_zeros_no_rows_and_given_memory() -> None:
    plain = drawn(7, 13)
    layer, into = QuantisedLinear(plain), torch.empty(2, 13)
    assert plain.bias is not None
    assert torch.equal(layer(torch.zeros(2, 7), into), plain.bias.expand(2, 13))
    assert torch.equal(into, plain.bias.expand(2, 13))
    assert layer(torch.zeros(0, 7)).shape == (0, 13)
    assert layer(torch.ones(2, 7, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_weights_take_a_byte_each() -> None:
    layer = QuantisedLinear(drawn(384, 5))
    weight, _ = torch.ops.quantized.linear_unpack(layer._packed)
    assert weight.int_repr().nbytes == 384 * 5
    assert [(name, tensor.shape) for name, tensor in layer.named_buffers()] == [
        ("bias", (5,)),
        ("totals", (5,)),
    ]
    assert not list(layer.parameters())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_reader_in_int8_agrees_with_float32(family: str, tmp_path: Path) -> None:
    reader(family, "encode").save(tmp_path)
    exact, found = longspan.load(tmp_path), longspan.load(tmp_path, precision="int8")
    a, b = (one.encode(CORPUS, normalise=True) for one in (exact, found))
    assert (a * b).sum(1).min() > 0.995
    assert not np.array_equal(a, b)
    assert "int8" in repr(found)
    assert is_quantised(found.model)
    assert not is_quantised(exact.model)


def test_int8_is_for_reading_and_says_so(tmp_path: Path) -> None:
    small = reader("longformer", "encode")
    small.save(tmp_path)
    found = longspan.load(tmp_path, precision="int8")
    with pytest.raises(InputError, match="Save it without precision='int8'"):
        found.save(tmp_path / "again")
    layer = QuantisedLinear(drawn(7, 13))
    with torch.enable_grad(), pytest.raises(BackendError, match="cannot be trained"):
        layer(torch.ones(2, 7, requires_grad=True))
    with pytest.raises(InputError, match="`precision` must be None or 'int8', but is 'int4'"):
        longspan.load(tmp_path, precision="int4")


def test_it_quantises_once_and_on_a_cpu_only(tmp_path: Path) -> None:
    reader("bert", "encode").save(tmp_path)
    model = longspan.load(tmp_path, precision="int8").model
    before = list(model.modules())
    assert list(quantise(model).modules()) == before
    with pytest.raises(InputError, match="the CPU for int8, but is 'meta'"):
        quantise(longspan.load(tmp_path).model.to("meta"))
