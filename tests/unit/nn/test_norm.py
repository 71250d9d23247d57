"""Layer normalization: as near to float64 as torch's, blind to batch mates, in place and beside."""

import pytest
import torch
from torch.nn import functional as F

from longspan import native
from longspan.errors import InputError
from longspan.nn.norm import LayerNorm, RMSNorm

EPS = 1e-5


def drawn(width: int) -> LayerNorm:
    torch.manual_seed(width)
    norm = LayerNorm(width, EPS)
    for parameter in norm.parameters():
        parameter.data.normal_()
    return norm


@pytest.mark.parametrize("target", ["avx512", "avx2", "scalar"])
@pytest.mark.parametrize("width", [1, 7, 63, 64, 97, 384, 769])
def test_it_is_as_near_to_float64_as_torch(width: int, target: str) -> None:
    if target not in native.targets():
        pytest.skip(f"the native core is not built, or this machine has no {target}")
    norm, x = drawn(width), torch.randn(67, width + 3)[:, 1:-2] * 3 + 5
    assert norm.bias is not None
    weight, bias = norm.weight.double(), norm.bias.double()
    with torch.no_grad(), native.force_target(target):
        true = F.layer_norm(x.double(), (width,), weight, bias, EPS)
        naive = F.layer_norm(x, (width,), norm.weight, norm.bias, EPS)
        found = torch.empty_like(x)
        native.layer_norm(x, norm.weight, norm.bias, EPS, into=found)
    ulp = torch.finfo(torch.float32).eps
    assert (found - true).abs().max() <= 2 * (naive - true).abs().max() + 4 * ulp * (1 + true.abs().max())


@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize("width", [1, 7, 64, 97, 769])
def test_rms_norms_divide_by_the_root_mean_square(width: int, shift: float) -> None:
    torch.manual_seed(width)
    norm, x = RMSNorm(width, EPS, shift=shift), torch.randn(67, width + 3)[:, 1:-2] * 3 + 5
    assert torch.equal(norm.weight.detach() + shift, torch.ones(width))
    norm.weight.data.normal_()
    wide = x.double()
    true = (
        wide * (wide.square().mean(1, keepdim=True) + EPS).rsqrt() * (norm.weight.detach().double() + shift)
    )
    with torch.no_grad():
        torch.testing.assert_close(norm(x).double(), true, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(norm(x, torch.empty(67, width)).double(), true, rtol=1e-5, atol=1e-6)
        half = norm.bfloat16()(x.bfloat16())
        assert half.dtype == torch.bfloat16
    torch.testing.assert_close(norm.float()(x).double(), true, rtol=1e-2, atol=1e-2)


def test_a_norm_without_bias_has_none() -> None:
    norm, x = LayerNorm(97, EPS, bias=False), torch.randn(5, 97)
    assert [name for name, _ in norm.named_parameters()] == ["weight"]
    expected = F.layer_norm(x, (97,), norm.weight, None, EPS)
    with torch.no_grad():
        torch.testing.assert_close(norm(x), expected)
    torch.testing.assert_close(norm(x), expected)


def test_a_row_has_the_same_bits_whatever_stands_beside_it_and_wherever_it_is_written() -> None:
    norm, x = drawn(97), torch.randn(300, 97)
    x[200] = torch.nan
    with torch.no_grad():
        whole = norm(x)
        assert whole[200].isnan().all()
        for start, end in ((0, 1), (31, 33), (64, 200), (201, 300)):
            assert torch.equal(norm(x[start:end]), whole[start:end])
        assert torch.equal(norm(x[:200].clone(), into := torch.empty(200, 97)), whole[:200])
        assert torch.equal(into, whole[:200])
        y = x[:200].clone()
        assert norm(y, y) is y
        assert torch.equal(y, whole[:200])


def test_what_the_core_cannot_read_goes_to_torch() -> None:
    norm = drawn(6)
    for x in (torch.randn(2, 3, 6), torch.randn(6, 2).t(), torch.randn(2, 6)):
        expected = F.layer_norm(x, (6,), norm.weight, norm.bias, EPS)
        assert expected.requires_grad
        torch.testing.assert_close(norm(x), expected)
        with torch.no_grad():
            torch.testing.assert_close(norm(x), expected)
    half = drawn(6).bfloat16()
    with torch.no_grad():
        assert half(torch.randn(2, 6).bfloat16()).dtype == torch.bfloat16
    assert norm.to("meta")(torch.empty(2, 6, device="meta")).shape == (2, 6)


@pytest.mark.skipif(native.core() is None, reason="the native core is not built")
@pytest.mark.parametrize("name", ["x", "weight", "bias", "into"])
def test_what_would_lead_the_core_out_of_its_memory_is_refused(name: str) -> None:
    given = {"x": torch.ones(5, 6), "weight": torch.ones(6), "bias": torch.ones(6), "into": torch.ones(5, 6)}
    native.layer_norm(**given, eps=EPS, centered=True)
    shape = given[name].shape
    for wrong in (torch.ones(*shape[:-1], 7), torch.ones(shape).double(), torch.ones(6, 5, 2), torch.ones(3)):
        with pytest.raises(InputError, match="must be"):
            native.layer_norm(**(given | {name: wrong}), eps=EPS, centered=True)
