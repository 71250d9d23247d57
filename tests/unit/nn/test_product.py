"""Linear layers in training: gradients near those of float64, by the core wherever it may compute them."""

import subprocess
import sys

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan import native
from longspan.nn import product as subject
from longspan.nn.linear import linear, new_linear
from longspan.nn.product import of_columns, of_rows, product, served

SIZES = ((1, 1), (7, 13), (97, 31), (31, 97), (768, 25))
ROWS = (0, 1, 5, 67, 797)


@pytest.fixture(autouse=True)
def _by_the_core(_portable: None) -> None:
    if not native.serves_linear(torch.float32):
        pytest.skip("the native core does not compute float32 here")


def drawn(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    torch.manual_seed(inputs)
    layer = new_linear(inputs, outputs, bias=bias)
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer


def gradients(y: Tensor, *inputs: Tensor) -> list[Tensor]:
    upstream = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).to(y.dtype)
    return list(torch.autograd.grad(y, inputs, upstream))


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("inputs", "outputs"), SIZES)
def test_gradients_are_as_near_to_float64_as_those_of_torch(inputs: int, outputs: int, rows: int) -> None:
    layer = drawn(inputs, outputs)
    x = torch.randn(rows, inputs + 3)[:, 2:-1].requires_grad_()  # rows apart, and not aligned
    weights = [layer.weight, layer.bias]
    y = linear(layer, x)
    assert "_Product" in type(y.grad_fn).__name__
    ours, naive = gradients(y, x, *weights), gradients(F.linear(x, *weights), x, *weights)
    double = [t.detach().double().requires_grad_() for t in (x, *weights)]
    for found, torchs, true in zip(ours, naive, gradients(F.linear(*double), *double), strict=True):
        assert found.shape == true.shape
        if found.numel():
            floor = 2 * torch.finfo(torch.float32).eps * (1 + float(true.abs().max()))
            assert (found - true).abs().max() <= 2 * (torchs - true).abs().max() + floor


def test_gradients_do_not_depend_on_threads() -> None:
    layer, x = drawn(67, 131), torch.randn(1031, 67, requires_grad=True)
    found = []
    for threads in (1, 2):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        found.append(gradients(linear(layer, x), x, layer.weight))
        torch.set_num_threads(before)
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))


def test_only_what_learns_gets_a_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = drawn(5, 3), torch.randn(4, 5, requires_grad=True)
    layer.weight.requires_grad_(False)
    monkeypatch.setattr(subject, "of_columns", None)  # would be called for the weight
    linear(layer, x).sum().backward()  # an upstream gradient whose rows are one row
    torch.testing.assert_close(x.grad, layer.weight.sum(0).expand(4, 5))
    assert layer.weight.grad is None
    assert layer.bias.grad is not None


def test_what_follows_the_layer_is_differentiated() -> None:
    layer, x, plus = drawn(6, 4), torch.randn(3, 6), torch.randn(3, 4, requires_grad=True)
    ours = linear(layer, x, then=F.gelu, times=torch.full((3, 4), 2.0), plus=plus)
    wanted = F.gelu(layer(x)) * 2 + plus
    torch.testing.assert_close(ours, wanted)
    for mine, right in zip(
        gradients(ours, layer.weight, plus), gradients(wanted, layer.weight, plus), strict=True
    ):
        torch.testing.assert_close(mine, right)


@pytest.mark.parametrize("shape", [(5, 3, 9), (5, 9, 3), (1, 4, 4), (0, 3, 2)])
def test_products_of_columns_are_added(shape: tuple[int, int, int]) -> None:
    rows, first, second = shape
    x, y, plus = torch.randn(rows, first), torch.randn(rows, second), torch.randn(first, second)
    torch.testing.assert_close(of_columns(x, y), x.t() @ y)
    wanted = plus + x.t() @ y
    assert of_columns(x, y, plus) is plus
    torch.testing.assert_close(plus, wanted)
    torch.testing.assert_close(of_rows(x.t(), y), x.t() @ y)


def test_other_dtypes_are_torchs() -> None:
    x, y = torch.randn(3, 5, dtype=torch.float64), torch.randn(3, 2, dtype=torch.float64)
    assert not served(x, y)
    assert torch.equal(of_columns(x, y), x.t() @ y)
    assert torch.equal(of_rows(x.t(), y), x.t() @ y)


def test_autocast_and_transforms_of_functions_are_torchs() -> None:
    layer, x = drawn(5, 3), torch.randn(4, 5)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(linear(layer, x), layer(x).float())
    found = torch.func.grad(lambda x: linear(layer, x).square().sum())(x)
    torch.testing.assert_close(found, 2 * layer(x) @ layer.weight)


def test_a_second_derivative_is_refused() -> None:
    x = torch.randn(4, 5, requires_grad=True)
    y = product(x, torch.randn(3, 5)).square().sum()
    (gradient,) = torch.autograd.grad(y, x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_memory_outside_of_a_matrix_is_refused() -> None:
    x, weight = torch.randn(4, 5), torch.randn(5, 3)
    with pytest.raises(ValueError, match="must be float32 of shape"):
        native.linear(x, weight.t().contiguous(), None, across=True, into=torch.empty(4, 5))
    with pytest.raises(ValueError, match="a matrix of float32 in rows"):
        native.linear(x, weight.t().contiguous().t(), None, across=True, into=torch.empty(4, 3))


def test_threads_of_torch_rest_while_ours_work() -> None:
    """A process of its own: how long threads spin is settled once."""
    script = (
        "import threading, torch\n"
        "from longspan.nn.product import product\n"
        "torch.set_num_threads(2)\n"
        "for _ in range(3):\n"
        "    product(torch.ones(2, 3, requires_grad=True), torch.ones(1, 3))\n"
        "print([thread.name for thread in threading.enumerate()])\n"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.count("longspan-openmp") == 1
