"""Windows of a text: every byte once an epoch, elsewhere in each, and the loss of what follows."""

import math

import numpy as np
import pytest
import torch

from longspan.errors import InputError
from longspan.families.char_lm.memory import read_on
from longspan.families.char_lm.model import CharLM
from longspan.recipes.char_lm.windows import Windows, next_byte_loss
from unit.families.char_lm import config, model, one

TEXT = np.random.default_rng(0).integers(0, 256, 1000).astype(np.uint8)


@pytest.mark.parametrize("length", [1, 7, 37, 111, 333, 998, 999])
@pytest.mark.parametrize("epoch", [0, 1])
def test_every_byte_is_predicted_once_in_an_epoch(length: int, epoch: int) -> None:
    places = np.arange(1000) % 251  # neighbors differ, and so do pairs of them
    source = Windows(places.astype(np.uint8), config(), length, seed=3)
    batch = source.batch(np.arange(len(source.lengths)), epoch)
    assert source.lengths.sum() == len(batch.ids) == 999
    pairs = sorted(zip(batch.ids.tolist(), batch.labels.tolist(), strict=True))
    assert pairs == sorted(zip(places[:-1].tolist(), places[1:].tolist(), strict=True))


def test_a_batch_depends_on_its_examples_and_the_epoch_alone() -> None:
    source = Windows(TEXT, config(), 100, seed=1)
    some = source.batch(np.array([3, 5]), 4)
    alone = source.batch(np.array([5]), 4)
    assert torch.equal(some.ids[-len(alone.ids) :], alone.ids)
    assert torch.equal(source.batch(np.array([3, 5]), 4).ids, some.ids)
    assert not torch.equal(source.batch(np.array([3, 5]), 5).ids, some.ids)
    assert not torch.equal(Windows(TEXT, config(), 100, seed=2).batch(np.array([3, 5]), 4).ids, some.ids)


def test_a_window_across_the_end_is_two_texts() -> None:
    source = Windows(TEXT, config(), 100)
    every = source.batch(np.arange(len(source.lengths)), 0)
    lengths = every.layout.lengths.tolist()
    assert len(lengths) == len(source.lengths) + 1
    assert sum(lengths) == source.lengths.sum()
    assert lengths.count(100) >= 8
    ends = every.layout.lengths.cumsum() - 1
    inside = np.setdiff1d(np.arange(999), ends)
    assert torch.equal(every.ids[inside + 1], every.labels[inside])


def test_the_loss_is_a_sum_of_nats() -> None:
    made = model(vocab_size=256)
    batch = Windows(TEXT, config(), 50).batch(np.arange(4), 0)
    loss = next_byte_loss(made, batch)
    chances = made(batch.ids, batch.layout).detach().double().softmax(-1)
    by_hand = -sum(math.log(float(row[label])) for row, label in zip(chances, batch.labels, strict=True))
    assert loss.weight == len(batch.ids)
    assert abs(float(loss.total.detach()) / by_hand - 1) < 1e-5


@pytest.mark.parametrize("kind", ["rotary", "relative"])
def test_with_a_memory_a_window_sees_what_precedes_it_and_learns_nothing_from_it(kind: str) -> None:
    made = model(kind)
    body = made.backbone
    assert isinstance(body, CharLM)
    batch = Windows(TEXT, config(), 50, memory=30).batch(np.array([7]), 0)
    assert batch.before is not None
    assert len(batch.before) == 30
    (begin,) = [
        place
        for place in range(950)
        if torch.equal(batch.ids, torch.from_numpy(TEXT[place : place + 50]).long())
    ]
    assert batch.before.tolist() == TEXT[begin - 30 : begin].tolist()
    loss = next_byte_loss(made, batch)
    loss.total.backward()
    gradients = [p.grad.clone() for p in made.parameters() if p.grad is not None]
    made.zero_grad()
    _, memory = read_on(body, batch.before, one(30), keep=30)
    x, _ = read_on(body, batch.ids, one(50), memory)
    expected = torch.nn.functional.cross_entropy(made.head(x, one(50)), batch.labels, reduction="sum")
    expected.backward()
    assert torch.allclose(loss.total, expected)
    found = [p.grad for p in made.parameters() if p.grad is not None]
    assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(gradients, found, strict=True))
    plain = next_byte_loss(made, batch._replace(before=None, before_layout=None))
    assert not torch.allclose(plain.total, expected)


def test_a_text_no_longer_than_a_window_is_refused() -> None:
    message = "`data` must be longer than a window of 1,000 bytes, but is '1,000 bytes'. Give more text"
    with pytest.raises(InputError, match=message):
        Windows(TEXT, config(), 1000)


def test_bytes_that_the_model_does_not_know_are_told() -> None:
    closed = config(vocab_size=2, alphabet=(97, 98))
    with pytest.raises(InputError, match="`data` must be of the 2 bytes that the model knows"):
        Windows(TEXT, closed, 100).batch(np.array([0]), 0)
