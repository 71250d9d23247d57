"""Linear layers with a change of low rank beside them, against the formula in float64."""

import copy
import math
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from conformance.conftest import one_thread
from helpers import without_native
from longspan import native
from longspan.errors import InputError
from longspan.nn.linear import ALL, linear, matrix
from longspan.nn.lora import (
    LoraConfig,
    LoraLinear,
    Outputs,
    exchange,
    lora_layers,
    merge_adapter,
    merge_and_unload,
    unload,
    unmerge_adapter,
)
from longspan.nn.quantized import quantize

__all__ = ["one_thread"]

IN, OUT, ROWS = 37, 30, 11
PARTS = {"one": [Outputs(0, OUT)], "two of three": [Outputs(0, 10), Outputs(20, 30)]}
EITHER = pytest.mark.parametrize("engine", ["native", "portable"])


@pytest.fixture
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "portable":
        without_native(monkeypatch)


def drawn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def layer(parts: str = "one", dtype: torch.dtype = torch.float32, **config: Any) -> LoraLinear:
    """A layer as if it had been trained."""
    base = nn.Linear(IN, OUT)
    base.weight.data, base.bias.data = drawn(OUT, IN, seed=2).to(dtype), drawn(OUT, seed=3).to(dtype)
    base.requires_grad_(False)
    made = LoraLinear(base, LoraConfig(**{"r": 3, "lora_alpha": 5, **config}), PARTS[parts])
    for number, (a, b) in enumerate(zip(made.lora_A, made.lora_B, strict=True)):
        a.data, b.data = drawn(*a.shape, seed=4 + number), drawn(*b.shape, seed=7 + number)
    return made


def exact(made: LoraLinear, x: Tensor) -> Tensor:
    """The formula, part by part, in float64."""
    assert made.bias is not None
    y = x.double() @ made.weight.double().T + made.bias.double()
    scale = made.config.lora_alpha / (math.sqrt(made.config.r) if made.config.use_rslora else made.config.r)
    for (start, stop), a, b in zip(made.parts, made.lora_A, made.lora_B, strict=True):
        y[:, start:stop] += scale * (x.double() @ a.double().T @ b.double().T)
    return y


def near(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found.double(), wanted.double(), rtol=1e-5, atol=2e-4)


@EITHER
@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("gradients", [True, False])
def test_whatever_is_fused_follows_the_formula(engine: None, parts: str, gradients: bool) -> None:
    made, x = layer(parts), drawn(ROWS, IN)
    times, plus = drawn(ROWS, OUT, seed=20), drawn(ROWS, OUT, seed=21)
    ways: tuple[Any, ...] = ((None, F.gelu, F.tanh), (None, times), (None, plus), (ALL, slice(5, 25)))
    for then, factor, rest, rows in product(*ways):
        some = [None if one is None else one[:, rows] for one in (factor, rest)]
        with torch.set_grad_enabled(gradients):
            found = linear(made, x, rows=rows, then=then, times=some[0], plus=some[1])
        wanted = exact(made, x)[:, rows]
        wanted = wanted if then is None else then(wanted)
        wanted = wanted * some[0].double() if some[0] is not None else wanted
        near(found, wanted + some[1].double() if some[1] is not None else wanted)
        if not gradients:
            into = torch.empty_like(found)
            with torch.no_grad():
                assert linear(made, x, into, rows=rows, then=then, times=some[0], plus=some[1]) is into
            assert torch.equal(into, found)


@EITHER
@pytest.mark.parametrize("parts", PARTS)
def test_gradients_go_to_the_thin_matrices_and_to_the_input(engine: None, parts: str) -> None:
    made, x, up = layer(parts), drawn(ROWS, IN).requires_grad_(), drawn(ROWS, OUT, seed=9)
    linear(made, x, then=F.gelu).mul(up).sum().backward()
    wide = copy.deepcopy(made).double()
    other = x.detach().double().requires_grad_()
    (F.gelu(exact(wide, other)) * up.double()).sum().backward()
    assert x.grad is not None
    assert other.grad is not None
    near(x.grad, other.grad)
    for mine, right in zip(made.parameters(), wide.parameters(), strict=True):
        assert (mine.grad is None) == (not mine.requires_grad)
        if mine.grad is not None:
            assert right.grad is not None
            near(mine.grad, right.grad)
    assert sum(one.requires_grad for one in made.parameters()) == 2 * len(PARTS[parts])


def test_rows_of_any_shape_are_taken_as_a_linear_layer_takes_them() -> None:
    made, x = layer(), drawn(2, 5, IN)
    near(made(x), exact(made, x.flatten(0, 1)).view(2, 5, OUT))
    assert made(x[:0]).shape == (0, 5, OUT)


@EITHER
@pytest.mark.parametrize("parts", PARTS)
def test_a_new_change_changes_nothing_bit_by_bit(engine: None, parts: str) -> None:
    base, x = nn.Linear(IN, OUT), drawn(ROWS, IN)
    made = LoraLinear(base, LoraConfig(), PARTS[parts])
    assert made.weight is base.weight
    with torch.no_grad():
        assert torch.equal(linear(made, x), linear(base, x))
    assert torch.equal(made(x), base(x))


def test_thin_matrices_begin_as_in_peft() -> None:
    def new(seed: int) -> LoraLinear:
        parts = PARTS["two of three"]
        return LoraLinear(nn.Linear(IN, OUT), LoraConfig(r=16), parts, torch.Generator().manual_seed(seed))

    made, again, other = new(0), new(0), new(1)
    for a, b in zip(made.lora_A, made.lora_B, strict=True):
        assert not b.any()
        assert a.abs().max() <= 1 / math.sqrt(IN)
        assert float(a.detach().std()) == pytest.approx(
            1 / math.sqrt(3 * IN), rel=0.1
        )  # uniform, of variance 1 / (3 in)
    assert torch.equal(made.lora_A[0], again.lora_A[0])
    assert not torch.equal(made.lora_A[0], made.lora_A[1])
    assert not torch.equal(made.lora_A[0], other.lora_A[0])


def test_the_scale_is_alpha_by_the_rank_or_its_root() -> None:
    x = drawn(ROWS, IN)
    for rooted in (False, True):
        made = layer(r=3, lora_alpha=7, use_rslora=rooted)
        near(made(x), exact(made, x))
        assert made.config.scaling == pytest.approx(7 / (math.sqrt(3) if rooted else 3))


def test_reading_uses_the_native_core_three_times_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    if not native.serves_linear(torch.float32):
        pytest.skip("the native core is not built")
    calls: list[tuple[int, ...]] = []
    kernel: Callable[..., Any] = native.linear

    def counted(x: Tensor, weight: Tensor, *rest: Any, **more: Any) -> Any:
        calls.append((*weight.shape, more["plus"] is not None))
        return kernel(x, weight, *rest, **more)

    monkeypatch.setattr(native, "linear", counted)
    made, x = layer(), drawn(ROWS, IN)
    with torch.no_grad():
        linear(made, x, plus=drawn(ROWS, OUT))
    assert calls == [(3, IN, False), (OUT, 3, True), (OUT, IN, True)]


def test_a_row_has_the_same_bits_whatever_rows_stand_beside_it() -> None:
    if not native.serves_linear(torch.float32):
        pytest.skip("the native core is not built")
    made, x = layer("two of three"), drawn(130, IN)
    with torch.no_grad():
        together = linear(made, x)
        for row in (0, 63, 64, 129):
            assert torch.equal(linear(made, x[row : row + 1])[0], together[row])


@pytest.mark.parametrize("parts", PARTS)
def test_merged_it_is_one_product_and_unmerged_what_it_was(parts: str) -> None:
    made, x = layer(parts), drawn(ROWS, IN)
    model = nn.Sequential(made)
    kept = made.weight.detach().clone()
    beside = model(x).detach()
    for _ in range(2):  # the second time nothing happens
        merge_adapter(model)
        assert made.merged
        near(model(x), exact(layer(parts), x))
        assert torch.equal(matrix(made, x)[0], made.weight)
    for _ in range(2):
        unmerge_adapter(model)
        assert torch.equal(made.weight, kept)
        assert torch.equal(model(x), beside)


def test_unloaded_layers_are_torchs_own() -> None:
    for merge in (False, True):
        made, x = layer(), drawn(ROWS, IN)
        model, wanted = nn.Sequential(made, nn.Tanh()), exact(made, drawn(ROWS, IN))
        (merge_and_unload if merge else unload)(model)
        assert type(model[0]) is nn.Linear
        assert not lora_layers(model)
        plain = x.double() @ made.weight.double().T + made.bias.double() if not merge else wanted
        near(model[0](x), plain)


def test_a_weight_that_is_shared_changes_in_the_layer_only() -> None:
    words = nn.Embedding(OUT, IN)
    decoder = nn.Linear(IN, OUT)
    decoder.weight = words.weight
    before = words.weight.detach().clone()
    model = nn.ModuleDict({"words": words, "decoder": LoraLinear(decoder, LoraConfig(), PARTS["one"])})
    lora_layers(model)["decoder"].lora_B[0].data.fill_(1.0)
    merge_and_unload(model)
    assert torch.equal(words.weight, before)
    assert not torch.equal(model.get_parameter("decoder.weight"), before)


def test_a_layer_in_two_places_is_exchanged_in_both() -> None:
    base = nn.Linear(3, 3)
    inner = nn.Sequential(base, base)
    model = nn.ModuleDict({"a": base, "b": inner})
    new = LoraLinear(base, LoraConfig(), [Outputs(0, 3)])
    exchange(model, base, new)
    assert model["a"] is new
    assert list(inner) == [new, new]


@EITHER
def test_half_weights_have_thin_matrices_in_float32(engine: None) -> None:
    made, x = layer(dtype=torch.bfloat16), drawn(ROWS, IN).bfloat16()
    assert {one.dtype for one in made.lora_A} == {torch.float32}
    wanted = exact(made, x)
    for gradients in (True, False):
        with torch.set_grad_enabled(gradients):
            found = linear(made, x)
        assert found.dtype == torch.bfloat16
        torch.testing.assert_close(found.double(), wanted, rtol=2**-7, atol=2**-4)
    made.merge()
    assert made.weight.dtype == torch.bfloat16


def test_dropout_takes_inputs_of_the_change_only_and_only_in_training() -> None:
    made, x = layer(lora_dropout=0.5), drawn(1, IN)
    torch.manual_seed(0)
    base = F.linear(x, made.weight, made.bias)
    draws = torch.stack([made.train()(x).detach() for _ in range(4000)])
    assert len({float(one[0, 0]) for one in draws}) > 100
    spread = draws.std(0) / math.sqrt(len(draws))
    assert ((draws.mean(0) - exact(made, x).float()).abs() < 6 * spread).all()
    near(made.eval()(x), exact(made, x))
    for b in made.lora_B:
        b.data.zero_()
    torch.testing.assert_close(made.train()(x), base)


def test_those_who_read_weights_read_the_change_in_them() -> None:
    made, x = layer("two of three"), drawn(ROWS, IN)
    weight, bias = matrix(made, x)
    near(F.linear(x, weight, bias), exact(made, x))
    weight.sum().backward()
    assert all(one.grad is not None for one in made.lora_A)
    torch.manual_seed(0)
    made = layer(lora_dropout=0.5).train()
    mean = torch.stack([matrix(made, x)[0].detach() for _ in range(3000)]).mean(0)
    torch.testing.assert_close(mean, matrix(made.eval(), x)[0].detach(), rtol=0, atol=1.5)
    assert not torch.equal(matrix(made.train(), x)[0], matrix(made, x)[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"r": 0}, "`r` must be at least 1, but is 0"),
        ({"r": 2.5}, "`r` must be a whole number"),
        ({"lora_alpha": -1}, "`lora_alpha` must be from 0"),
        ({"lora_dropout": 1.0}, "`lora_dropout` must be from 0 to below 1"),
        ({"use_rslora": "yes"}, "`use_rslora` must be True or False"),
    ],
)
def test_settings_without_a_meaning_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LoraConfig(**options)


def test_what_has_an_adapter_or_a_hook_gets_none() -> None:
    with pytest.raises(InputError, match="`layer` must be a linear layer without hooks or adapters"):
        LoraLinear(layer(), LoraConfig(), PARTS["one"])
    for function in (merge_adapter, unmerge_adapter, unload, merge_and_unload):
        with pytest.raises(InputError, match="`model` must be one with an adapter, but is 'without'"):
            function(nn.Linear(2, 2))


def test_an_adapter_is_merged_before_a_model_is_made_int8() -> None:
    class Layer(nn.Module):
        int8_paths = ("up",)

        def __init__(self) -> None:
            super().__init__()
            self.up = layer()

    with pytest.raises(InputError, match="`model` must be without an adapter, but is 'with one'"):
        quantize(Layer())
