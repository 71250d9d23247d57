"""Bits per character: the windows, the sum by hand, and the shortcut."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from longspan.errors import InputError
from longspan.families.char_lm.model import config_of
from longspan.families.task_model import TaskModel
from longspan.recipes.char_lm import bits
from longspan.recipes.char_lm.bits import bits_of, windows
from unit.families.char_lm import model, one

TEXT = np.random.default_rng(1).integers(0, 256, 101).astype(np.uint8)


def by_hand(made: TaskModel, length: int, step: int) -> float:
    """Each character from its own window, read alone."""
    ids, total, size = torch.from_numpy(TEXT).long(), 0.0, len(TEXT) - 1
    for place in range(size):  # predicts place + 1
        end = min(length, size)
        while end <= place:
            end = min(end + step, size)
        begin = end - min(length, size)
        with torch.no_grad():
            logits = made(ids[begin : place + 1], one(place + 1 - begin))[-1].double()
        total -= float(logits.log_softmax(0)[ids[place + 1]]) / math.log(2)
    return total


@pytest.mark.parametrize(("length", "step"), [(20, 7), (64, 64), (33, 1), (100, 9), (101, 100), (20, 20)])
def test_the_bits_are_those_by_hand(length: int, step: int) -> None:
    made = model()
    found = bits_of(made, TEXT, length=length, step=step)
    assert found.characters == 100
    assert abs(found.bits / by_hand(made, length, step) - 1) < 1e-6
    assert found.per_character == found.bits / 100


def test_where_windows_hold_all_that_counts_longer_steps_give_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = model("relative")
    field = config_of(made).receptive_field
    rows: list[int] = []
    real = made.backbone.forward

    def counting(ids: Tensor, *rest: Any) -> Tensor:
        rows.append(len(ids))
        return real(ids, *rest)

    monkeypatch.setattr(made.backbone, "forward", counting)
    quick = bits_of(made, TEXT, length=field + 5, step=5)
    assert sum(rows) == 100
    monkeypatch.setattr(type(config_of(made)), "receptive_field", 10**9)
    slow = bits_of(made, TEXT, length=field + 5, step=5)
    assert sum(rows) > 5 * 100
    assert abs(quick.bits / slow.bits - 1) < 1e-6
    assert abs(slow.bits / by_hand(made, field + 5, 5) - 1) < 1e-6


def test_windows_are_read_together_up_to_a_number_of_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    made = model()
    whole = bits_of(made, TEXT, length=40, step=10)
    monkeypatch.setattr(bits, "BATCH", 100)
    assert abs(bits_of(made, TEXT, length=40, step=10).bits / whole.bits - 1) < 1e-6


@pytest.mark.parametrize("size", [1, 6, 7, 10, 64])
@pytest.mark.parametrize(("length", "step"), [(6, 3), (6, 6), (1, 1), (64, 5)])
def test_every_character_is_scored_once_with_as_much_before_it_as_there_is(
    size: int, length: int, step: int
) -> None:
    scored = list[int]()
    for window in windows(size, length, step):
        assert window.end - window.begin == min(length, size)
        assert window.begin >= 0
        scored += range(window.end - window.scored, window.end)
        assert window.scored <= step or window.begin == 0
    assert scored == list(range(size))


def test_a_model_that_knows_nothing_needs_eight_bits() -> None:
    made = model()
    for parameter in made.parameters():
        parameter.data.zero_()
    assert abs(bits_of(made, TEXT, length=50, step=50).per_character - 8) < 1e-5


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(InputError, match="`length` must be at least 8, but is 7"):
        bits_of(model(), TEXT, length=7, step=8)
    with pytest.raises(InputError, match="`data` must be at least 2 characters long, but is 1"):
        bits_of(model(), TEXT[:1], length=7, step=7)
    with pytest.raises(InputError, match="of the 3 bytes that the model knows"):
        bits_of(model(vocab_size=3, alphabet=(97, 98, 122)), TEXT, length=7, step=7)
