"""Linear layers: near float64, and to the last bit blind to batch mates and threads."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan import native as compiled
from longspan.errors import InputError
from longspan.nn.activations import Activation
from longspan.nn.linear import FUSED, linear, native, new_linear
from longspan.nn.quantized import QuantizedLinear

GELU = FUSED[F.gelu]
SIZES = ((1, 1), (7, 13), (63, 5), (97, 31), (768, 25), (1543, 50), (3072, 24))
ROWS = (0, 1, 3, 5, 67, 513)


@pytest.fixture(autouse=True)
def _reading() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture(params=["avx512", "avx2", "scalar"])
def core(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    """The native core, held to one instruction set and asked for float32 too."""
    if request.param not in compiled.targets():
        pytest.skip(f"the native core is not built, or this machine has no {request.param}")
    with compiled.force_target(request.param):
        yield compiled


def drawn(inputs: int, outputs: int, *, bias: bool = True) -> nn.Linear:
    torch.manual_seed(inputs)
    layer = new_linear(inputs, outputs, bias=bias)
    for parameter in layer.parameters():
        parameter.copy_(torch.randn_like(parameter))
    return layer


def by_core(
    core: ModuleType, layer: nn.Linear, x: Tensor, *, act: int = 0, plus: Tensor | None = None
) -> Tensor:
    into = torch.full((len(x), len(layer.weight)), torch.nan)
    core.linear(x, layer.weight, layer.bias, scales=None, times=None, plus=plus, act=act, into=into)
    return into


def exactly(layer: nn.Linear, x: Tensor) -> Tensor:
    return F.linear(x.double(), layer.weight.double(), None if layer.bias is None else layer.bias.double())


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(("inputs", "outputs"), SIZES)
def test_it_is_as_near_to_float64_as_torch(core: ModuleType, inputs: int, outputs: int, rows: int) -> None:
    layer, plus = drawn(inputs, outputs, bias=rows != 3), torch.randn(rows, outputs + 2)[:, 1:-1]
    x = torch.randn(rows, inputs + 3)[:, 2:-1]  # rows apart, and not aligned
    true, ulp = exactly(layer, x), torch.finfo(torch.float32).eps
    naive = F.linear(x, layer.weight, layer.bias)
    floor = 2 * ulp * (1 + float(F.linear(x.abs(), layer.weight.abs()).max())) if rows else 0.0
    for found, expected, bound in (
        (by_core(core, layer, x), true, naive - true),
        (by_core(core, layer, x, act=GELU), F.gelu(true), F.gelu(naive) - F.gelu(true)),
        (by_core(core, layer, x, plus=plus), true + plus, naive + plus - (true + plus)),
        (by_core(core, layer, x, act=GELU, plus=plus), F.gelu(true) + plus, F.gelu(naive) - F.gelu(true)),
    ):
        assert found.shape == expected.shape
        if rows:
            assert (found - expected).abs().max() <= 2 * bound.abs().max() + floor


@pytest.mark.parametrize(("inputs", "outputs"), SIZES)
def test_a_row_has_the_same_bits_whatever_stands_beside_it(
    core: ModuleType, inputs: int, outputs: int
) -> None:
    layer, x = drawn(inputs, outputs), torch.randn(1100, inputs)
    x[700] = torch.nan
    whole = by_core(core, layer, x, act=GELU)
    for start, end in ((0, 1), (699, 700), (3, 70), (511, 514), (1023, 1030), (701, 1100)):
        assert torch.equal(by_core(core, layer, x[start:end], act=GELU), whole[start:end])
    turned = by_core(core, layer, x.flip(0), act=GELU).flip(0)
    assert torch.equal(turned[:700], whole[:700])
    assert torch.equal(turned[701:], whole[701:])
    assert whole[700].isnan().all()


def test_threads_change_nothing(core: ModuleType) -> None:
    layer, x = drawn(769, 130), torch.randn(600, 769)
    threads, found = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            found.append(by_core(core, layer, x, act=GELU))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_nan_and_infinity_go_where_arithmetic_takes_them(core: ModuleType) -> None:
    layer, x = drawn(13, 30), torch.randn(5, 13)
    x[1, 3], x[3, 5] = torch.nan, torch.inf
    found, expected = by_core(core, layer, x), F.linear(x, layer.weight, layer.bias)
    assert torch.equal(found.isnan(), expected.isnan())
    assert torch.equal(found.isinf(), expected.isinf())
    one = new_linear(1, 1, bias=False)
    one.weight.fill_(1.0)
    edges = torch.tensor([[torch.nan], [torch.inf], [-torch.inf], [0.0], [1e30], [-1e30]])
    true = F.gelu(edges.double()).float()  # torch's own float32 kernel makes NaN of infinity on some CPUs
    torch.testing.assert_close(by_core(core, one, edges, act=GELU), true, equal_nan=True)


@pytest.mark.parametrize("act", [act for act in FUSED if act])
def test_an_activation_is_as_near_to_float64_as_torch(core: ModuleType, act: Activation) -> None:
    one, x = new_linear(1, 1, bias=False), torch.linspace(-9, 9, 100001)[:, None]
    one.weight.fill_(1.0)
    true = act(x.double())
    found, naive = (
        float(((y - true) / x.abs().clamp(min=1e-3)).abs().max())
        for y in (by_core(core, one, x, act=FUSED[act]), act(x))
    )
    assert found <= 2 * naive + torch.finfo(torch.float32).eps


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("then", [*FUSED, torch.tanh])
def test_activation_sum_and_given_memory_mean_what_they_say(dtype: torch.dtype, then: Activation) -> None:
    layer = drawn(37, 1024).to(dtype)
    x, plus, times, into = (torch.randn(9, n).to(dtype) for n in (37, 1024, 1024, 1024))
    y = F.linear(x.double(), layer.weight.double(), layer.bias.double() if layer.bias is not None else None)
    activated = y if then is None else then(y)
    expected = (activated + plus.double()).to(dtype)
    close = partial(torch.testing.assert_close, rtol=0, atol=1e-5 if dtype == torch.float32 else 0.25)
    close(linear(layer, x, then=then, plus=plus), expected)
    assert linear(layer, x, into, then=then, plus=plus) is into
    close(into, expected)
    with torch.enable_grad():
        found = linear(layer, x, then=then, plus=plus)
        close(found, expected)
        found.float().sum().backward()
    assert layer.weight.grad is not None
    product = activated.detach() * times.double() + plus.double()
    close = partial(
        torch.testing.assert_close,
        rtol=1e-5 if dtype == torch.float32 else 0.1,
        atol=0.25 if dtype != torch.float32 else 1e-5,
    )
    close(linear(layer, x, then=then, times=times, plus=plus), product.to(dtype))
    rows = slice(100, 612)
    part = linear(layer, x, times[:, rows], rows=rows, then=then, times=times[:, rows], plus=plus[:, rows])
    close(part, product[:, rows].to(dtype))
    assert part.data_ptr() == times[:, rows].data_ptr(), "a factor's memory may hold the product"


class Adapter(nn.Module):
    """What peft puts in the place of a layer."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base = base

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.base(x) + 1.0
        return result


def test_a_layer_that_is_wrapped_or_watched_is_called() -> None:
    layer, x, seen = drawn(37, 24), torch.randn(9, 37), []
    plain = linear(layer, x)
    torch.testing.assert_close(linear(Adapter(layer), x, rows=slice(3, 9)), plain[:, 3:9] + 1.0)
    hook = layer.register_forward_hook(lambda module, inputs, output: seen.append(output))
    torch.testing.assert_close(linear(layer, x), plain)
    assert len(seen) == 1
    hook.remove()
    linear(layer, x)
    assert len(seen) == 1


def test_weights_mapped_from_a_read_only_file_serve(core: ModuleType, tmp_path: Path) -> None:
    layer, x = drawn(97, 31), torch.randn(20, 97)
    expected = by_core(core, layer, x)
    (tmp_path / "weight").write_bytes(b"xxxx" + layer.weight.numpy().tobytes())  # and not aligned
    (tmp_path / "weight").chmod(0o400)
    mapped = torch.from_file(str(tmp_path / "weight"), shared=False, size=1 + 97 * 31)[1:]
    layer.weight.data = mapped.view(31, 97)
    assert torch.equal(by_core(core, layer, x), expected)


@pytest.mark.parametrize("int8", [False, True])
def test_what_would_lead_outside_a_tensor_is_refused(core: ModuleType, int8: bool) -> None:
    given = {
        "x": torch.randn(5, 8),
        "weight": torch.ones(6, 8, dtype=torch.int8 if int8 else torch.float32),
        "bias": torch.randn(6),
        "scales": torch.ones(6) if int8 else None,
        "times": torch.randn(5, 6),
        "plus": torch.randn(5, 6),
        "into": torch.empty(5, 6),
    }
    core.linear(**given, act=0)
    for name, x in given.items():
        if x is None:
            continue
        faults = {
            "shorter": x[:-1],
            "narrower": x[..., :-1],
            "of another dtype": x.double(),
            "of half the bytes": x.to(torch.bfloat16),
            "of one more axis": x[None],
            "apart": torch.stack([x, x], -1)[..., 0],
            "negated": torch.complex(x.float(), x.float()).conj().imag,
            "elsewhere": x.to("meta"),
        }
        for what, fault in faults.items():
            if (name, what) == ("x", "shorter"):
                continue  # then all others are longer, which the next lines try
            with pytest.raises(InputError, match=f"`({name}|x|into)` must be"):
                core.linear(**(given | {name: fault}), act=0)
    with pytest.raises(InputError, match=r"`into` must be .* in rows apart from each other"):
        core.linear(**(given | {"into": torch.empty(1, 6).expand(5, 6)}), act=0)
    freed = torch.randn(5, 8)
    freed.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="must lie in memory"):
        core.linear(**(given | {"x": freed}), act=0)


def test_int8_layers_refuse_rows_of_another_width(core: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "serves_linear", lambda dtype: True)
    layer = QuantizedLinear(drawn(8, 6))
    for x in (torch.randn(5, 7), torch.randn(5, 9), torch.randn(2, 3, 8)):
        with pytest.raises(InputError, match="`x` must be"):
            layer(x)


def test_what_the_core_cannot_read_goes_to_torch() -> None:
    layer = drawn(8, 6)
    for x in (torch.randn(2, 3, 8), torch.randn(2, 8).double(), torch.empty(2, 8, device="meta")):
        assert native(x, layer.weight) is None
    assert layer(torch.randn(2, 3, 8)).shape == (2, 3, 6)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        layer(torch.randn(2, 7))
    turned = new_linear(6, 8)
    turned.weight.data = torch.randn(6, 8).t()
    assert native(torch.randn(2, 6), turned.weight) is None
    assert layer(torch.randn(8, 2).t()).shape == (2, 6), "columns that are not neighbours"
