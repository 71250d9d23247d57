"""Reading as the text comes: the same logits as of the whole text, from a cache that does not grow."""

from typing import Any

import pytest
import torch

from longspan.families.char_lm.model import config_of
from longspan.families.char_lm.stream import Ring, Stream
from unit.families.char_lm import BOTH, model, one, some_ids

EVERY = pytest.mark.parametrize("kind", BOTH)
FAR: dict[str, Any] = {"radius": (3, 70, 130), "dilation": (1, (1, 2), (3, 1))}
PIECES = {
    "one by one": [1] * 500,
    "a prompt, then one by one": [129] + [1] * 371,
    "pieces of all sizes": [1, 63, 64, 65, 1, 1, 200, 100, 5],
}


@EVERY
@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
def test_a_stream_gives_the_logits_of_the_whole_text(kind: str, pieces: list[int]) -> None:
    made, ids = model(kind, **FAR), some_ids(sum(pieces))
    with torch.no_grad():
        whole = made(ids, one(len(ids)))
    stream = Stream(made)
    found = torch.cat([stream.read(piece) for piece in ids.split(pieces)])
    torch.testing.assert_close(found, whole, rtol=0, atol=2e-5)
    assert stream.position == len(ids)


@EVERY
def test_a_prompt_longer_than_a_piece_is_read(kind: str) -> None:
    made, ids = model(kind), some_ids(1100)
    with torch.no_grad():
        whole = made(ids, one(1100))
    torch.testing.assert_close(Stream(made).read(ids), whole, rtol=0, atol=2e-5)


@EVERY
def test_far_from_the_beginning_only_the_distance_counts(kind: str) -> None:
    made, ids = model(kind), some_ids(80)
    near, far = Stream(made), Stream(made)
    far.position = 50_000_000  # where float32 has no angles
    torch.testing.assert_close(far.read(ids), near.read(ids), rtol=0, atol=2e-5)
    torch.testing.assert_close(far.read(ids[:1]), near.read(ids[:1]), rtol=0, atol=2e-5)


def test_no_more_is_kept_than_a_layer_can_see() -> None:
    made = model()
    stream = Stream(made)
    for ids in some_ids(200).split(1):
        stream.read(ids)
    assert [ring.size for ring in stream._rings] == [reach + 1 for reach in config_of(made).reaches]
    assert [ring.behind for ring in stream._rings] == list(config_of(made).reaches)


def test_a_ring_gives_rows_in_order_however_they_come() -> None:
    ring, rows = Ring(5), torch.arange(40.0).view(20, 1, 2)
    seen = ring.update(rows[:2], rows[:2])[0]
    assert torch.equal(seen, rows[:2])
    assert torch.equal(ring.update(rows[2:9], rows[2:9])[0], rows[:9])
    assert ring.behind == 4
    assert torch.equal(ring.update(rows[9:11], rows[9:11])[1], rows[5:11])
    held = ring.update(rows[11:12], rows[11:12])[0]
    assert torch.equal(held.sort(0).values, rows[7:12])


def test_a_model_in_training_is_read_in_evaluation_and_stays_in_training() -> None:
    made = model(dropout=0.5).train()
    first, second = (Stream(made).read(some_ids(9)) for _ in range(2))
    assert torch.equal(first, second)
    assert made.training
