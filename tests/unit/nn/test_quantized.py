"""int8 linear layers: near float32, exact in their sums, blind to batch mates, and for reading only."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import longspan
from helpers import without_native
from longspan import native
from longspan.errors import BackendError, InputError
from longspan.nn.linear import linear, new_linear
from longspan.nn.quantized import STEPS, WEIGHT_STEPS, QuantizedLinear, is_quantized, quantize
from unit.tasks.tiny import CORPUS, FAMILIES, reader

SIZES = ((7, 13), (64, 48), (97, 31), (384, 5))


@pytest.fixture(autouse=True, params=["native", "torch"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each test with the native core's layers and with torch's."""
    if request.param == "torch":
        without_native(monkeypatch)
        if "fbgemm" not in torch.backends.quantized.supported_engines:
            pytest.skip("torch has no fbgemm here")
    elif not native.serves_linear(torch.int8):
        pytest.skip("the native core is not built, or torch is faster here")
    with torch.no_grad():
        yield request.param


def drawn(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    """A layer whose weight rows are of very different sizes."""
    torch.manual_seed(inputs)
    layer = new_linear(inputs, outputs, bias=bias)
    layer.weight.copy_(torch.randn(outputs, inputs) * torch.logspace(-3, 1, outputs)[:, None])
    if layer.bias is not None:
        layer.bias.copy_(torch.randn(outputs))
    return layer


def in_eight_bits() -> bool:
    """Whether the native core takes activations of 8 bits, not of 16."""
    return native.targets()[0] == "avx512" and native.load().features()["avx512vnni"]


def by_hand(layer: nn.Linear, x: torch.Tensor, way: str) -> torch.Tensor:
    """The definition, in float64."""
    scale = (layer.weight.abs().amax(1) / WEIGHT_STEPS).double()[:, None]
    bias = 0.0 if layer.bias is None else layer.bias.double()
    if way == "native" and in_eight_bits():
        low, high = x.amin(1, keepdim=True), x.amax(1, keepdim=True)
        step = (high - low) / 255
        steps, weight = ((x - low) / step).round().double(), (layer.weight / scale.float()).round().double()
        return (steps * step + low) @ weight.T * scale.T + bias
    if way == "native":
        most = torch.tensor(float(min(32767, (2**31 - 1) // (127 * x.shape[1]))))
        step = x.abs().amax(1, keepdim=True) / most
        steps = (x.double() * (1 / step).double()).round()
        return steps @ (layer.weight / scale.float()).round().double().T * scale.T * step + bias
    middle, reach = (x.amax(1) + x.amin(1))[:, None] / 2, (x.amax(1) - x.amin(1))[:, None] / 2
    steps = ((x - middle) * (STEPS / reach)).round().double()
    weight = (layer.weight.double() / scale).round().clamp(-WEIGHT_STEPS, WEIGHT_STEPS)
    sums = steps @ weight.T
    constant = middle.double() * (weight * scale).sum(1)
    return sums * scale.T * (reach.double() / STEPS) + constant + bias


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("inputs", "outputs"), SIZES)
def test_it_computes_its_definition(way: str, inputs: int, outputs: int, bias: bool) -> None:
    layer, x = drawn(inputs, outputs, bias=bias), torch.randn(67, inputs)
    torch.testing.assert_close(
        QuantizedLinear(layer)(x).double(),
        by_hand(layer, x, way),
        rtol=1e-5,
        atol=1e-5 * float(x.abs().max()),
    )


def test_sums_do_not_saturate_at_the_largest_values() -> None:
    layer = new_linear(3072, 3, bias=False)
    layer.weight.copy_(torch.tensor([[1.0], [-1.0], [0.0]]).expand(3, 3072))
    x = torch.ones(2, 3072)
    x[:, -1] = -1.0
    found = QuantizedLinear(layer)(x * torch.tensor([[1.0], [-1.0]]))
    expected = torch.tensor([[3070.0, -3070.0, 0.0], [-3070.0, 3070.0, 0.0]])
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("inputs", [1, 2, 515, 517, 768, 3072, 4096, 20000])
def test_sums_of_the_largest_values_do_not_overflow(inputs: int) -> None:
    layer = new_linear(inputs, 2, bias=False)
    layer.weight.copy_(torch.tensor([[1.0], [-1.0]]).expand(2, inputs))
    x = torch.ones(7, inputs) * 3.0
    found = QuantizedLinear(layer)(x)
    torch.testing.assert_close(found, torch.tensor([[3.0, -3.0]]).expand(7, 2) * inputs, rtol=1e-6, atol=0)


@pytest.mark.parametrize("target", ["avx512", "avx2", "scalar"])
def test_every_instruction_set_computes_the_same(way: str, target: str) -> None:
    if way == "torch" or target not in native.targets():
        pytest.skip("not run here")
    layer, x = QuantizedLinear(drawn(97, 31)), torch.randn(67, 97)
    expected = layer(x)
    with native.force_target(target):
        found = layer(x)
    if target != "avx512" and in_eight_bits():
        assert (found - expected).norm() < 0.01 * expected.norm()
    else:  # a step may be rounded otherwise
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


def test_a_row_that_is_not_finite_has_no_result_and_harms_no_other() -> None:
    layer, x = QuantizedLinear(drawn(64, 48)), torch.randn(5, 64)
    expected = layer(x)
    x[1, 3], x[3, 5] = torch.nan, -torch.inf
    found = layer(x)
    assert torch.equal(found[::2], expected[::2])
    assert not found[1::2].isfinite().any()


@pytest.mark.parametrize(("inputs", "outputs"), SIZES)
def test_a_row_has_the_same_bits_whatever_stands_beside_it(inputs: int, outputs: int) -> None:
    layer, x = QuantizedLinear(drawn(inputs, outputs)), torch.randn(1500, inputs)
    x[700] *= 1e6  # a loud mate
    whole = layer(x)
    for start, end in ((0, 1), (699, 701), (3, 70), (1023, 1025), (1100, 1500)):
        assert torch.equal(layer(x[start:end]), whole[start:end])
    assert torch.equal(layer(x.flip(0)).flip(0), whole)


def test_a_loud_row_does_not_drown_a_quiet_one() -> None:
    layer, x = drawn(64, 48), torch.randn(2, 64)
    x[1] *= 1e-6
    expected = QuantizedLinear(layer)(x * torch.tensor([[1.0], [1e6]])) - layer.bias
    torch.testing.assert_close((QuantizedLinear(layer)(x) - layer.bias)[0], expected[0])
    assert torch.cosine_similarity(torch.mv(layer.weight, x[1]), expected[1], 0) > 0.999


def test_rows_of_zeros_no_rows_and_given_memory() -> None:
    plain = drawn(7, 13)
    layer, into = QuantizedLinear(plain), torch.empty(2, 13)
    assert plain.bias is not None
    assert torch.equal(linear(layer, torch.zeros(2, 7), into), plain.bias.expand(2, 13))
    assert torch.equal(into, plain.bias.expand(2, 13))
    assert layer(torch.zeros(0, 7)).shape == (0, 13)
    assert layer(torch.ones(2, 7, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_weights_take_a_byte_each(way: str) -> None:
    layer = QuantizedLinear(drawn(384, 5))
    if way == "torch":
        assert layer._torch is not None
        weight, _ = torch.ops.quantized.linear_unpack(layer._torch.packed)
        assert weight.int_repr().nbytes == 384 * 5
    else:
        assert sum(buffer.nbytes for buffer in layer.buffers()) == 384 * 5 + 2 * 4 * 5
    assert not list(layer.parameters())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_reader_in_int8_agrees_with_float32(way: str, family: str, tmp_path: Path) -> None:
    reader(family, "encode").save(tmp_path)
    exact, found = longspan.load(tmp_path), longspan.load(tmp_path, precision="int8")
    a, b = (one.encode(CORPUS, normalize=True) for one in (exact, found))
    assert (a * b).sum(1).min() > (0.995 if way == "torch" else 0.9995)
    assert not np.array_equal(a, b)
    assert "int8" in repr(found)
    assert is_quantized(found.model)
    assert not is_quantized(exact.model)


def test_int8_is_for_reading_and_says_so(tmp_path: Path) -> None:
    small = reader("longformer", "encode")
    small.save(tmp_path)
    found = longspan.load(tmp_path, precision="int8")
    with pytest.raises(InputError, match="Save it without precision='int8'"):
        found.save(tmp_path / "again")
    layer = QuantizedLinear(drawn(7, 13))
    with torch.enable_grad(), pytest.raises(BackendError, match="cannot be trained"):
        layer(torch.ones(2, 7, requires_grad=True))
    with pytest.raises(InputError, match="`precision` must be None or 'int8', but is 'int4'"):
        longspan.load(tmp_path, precision="int4")


def test_it_quantises_once_and_on_a_cpu_only(tmp_path: Path) -> None:
    reader("bert", "encode").save(tmp_path)
    model = longspan.load(tmp_path, precision="int8").model
    before = list(model.modules())
    assert list(quantize(model).modules()) == before
    with pytest.raises(InputError, match="the CPU for int8, but is 'meta'"):
        quantize(longspan.load(tmp_path).model.to("meta"))
