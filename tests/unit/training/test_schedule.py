"""Schedules: a factor for each step."""

import pytest
import torch
from torch.optim import SGD
from transformers import (
    get_constant_schedule_with_warmup,
    get_cosine_schedule_with_warmup,
    get_linear_schedule_with_warmup,
    get_polynomial_decay_schedule_with_warmup,
)

from longspan.errors import InputError
from longspan.training.schedule import SCHEDULES, Constant, Cosine, Linear, Polynomial, Schedule

STEPS, WARM = 40, 8
PEERS = [
    (Constant(WARM), lambda o: get_constant_schedule_with_warmup(o, WARM)),
    (Linear(WARM), lambda o: get_linear_schedule_with_warmup(o, WARM, STEPS)),
    (Cosine(WARM), lambda o: get_cosine_schedule_with_warmup(o, WARM, STEPS)),
    (
        Polynomial(WARM, end=0.1),
        lambda o: get_polynomial_decay_schedule_with_warmup(o, WARM, STEPS, 0.1, 3.0),
    ),
]


@pytest.mark.parametrize(("ours", "theirs"), PEERS)
def test_after_the_warm_up_factors_are_those_of_transformers(ours: Schedule, theirs: object) -> None:
    optimizer = SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedule = theirs(optimizer)  # type: ignore[operator]
    for step in range(STEPS + 1):
        if step >= WARM:
            assert ours.factor(step, STEPS) == pytest.approx(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()


@pytest.mark.parametrize("kind", SCHEDULES.values())
def test_the_warm_up_is_a_number_of_steps_or_a_share_of_them(kind: type[Linear]) -> None:
    for warmup in (WARM, WARM / STEPS):
        factors = [kind(warmup).factor(step, STEPS) for step in range(WARM)]
        assert factors == pytest.approx([(step + 1) / WARM for step in range(WARM)])
    assert kind(0).factor(0, STEPS) == 1.0
    assert kind(100).factor(0, 3) == 0.01  # longer than the run


@pytest.mark.parametrize("warmup", [-1, float("nan"), float("inf")])
def test_a_bad_warm_up_is_told(warmup: float) -> None:
    with pytest.raises(InputError, match="`warmup` must be a number of steps"):
        Linear(warmup)
