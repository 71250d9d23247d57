"""The moving average of weights, against the formula in float64."""

import pytest
import torch
from torch import Tensor

from longspan.errors import CheckpointError, InputError
from longspan.training.ema import EMA

DECAY = 0.9


def drawn(seed: int, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return {
        "matrix": torch.randn(5, 3, generator=draw).to(dtype),
        "vector": torch.randn(7, generator=draw).to(dtype),
        "number": torch.randn((), generator=draw).to(dtype),
    }


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_average_is_that_of_the_formula_in_float32(dtype: torch.dtype) -> None:
    weights = drawn(0, dtype)
    ema, wanted = EMA(DECAY, weights), {name: value.double().clone() for name, value in weights.items()}
    for step in range(1, 20):
        for name, value in drawn(step, dtype).items():
            weights[name].copy_(value)
            wanted[name] = DECAY * wanted[name] + (1 - DECAY) * value.double()
        ema.update()
    for name, mean in ema.average.items():
        assert mean.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        torch.testing.assert_close(mean.double(), wanted[name], rtol=1e-5, atol=1e-6)


def test_it_goes_on_bit_by_bit_from_what_was_stored() -> None:
    weights = drawn(0)
    ema = EMA(DECAY, weights)
    weights["matrix"].add_(1.0)
    ema.update()
    stored = {name: value.clone() for name, value in ema.average.items()}
    other = EMA(DECAY, weights)
    other.restore(stored, "here")
    for one in (ema, other):
        one.update()
    for name, value in ema.average.items():
        assert torch.equal(value, other.average[name])
        assert not torch.equal(value, stored[name]) or name != "matrix"


def test_nothing_has_an_average_of_nothing() -> None:
    ema = EMA(DECAY, {})
    ema.update()
    assert ema.average == {}


def test_an_average_of_other_weights_is_refused() -> None:
    ema = EMA(DECAY, drawn(0))
    before = ema.average["matrix"].clone()
    with pytest.raises(
        CheckpointError, match="`here` is refused: its average is one of other weights: vector"
    ):
        ema.restore({name: value for name, value in drawn(1).items() if name != "vector"}, "here")
    wrong = drawn(1) | {"vector": torch.zeros(6)}
    with pytest.raises(CheckpointError, match=r"the average of vector has the shape \(6,\), not \(7,\)"):
        ema.restore(wrong, "here")
    assert torch.equal(ema.average["matrix"], before)


@pytest.mark.parametrize("decay", [0.0, 1.0, -1.0, float("nan")])
def test_the_decay_is_between_0_and_1(decay: float) -> None:
    with pytest.raises(InputError, match="`decay` must be"):
        EMA(decay, {})
