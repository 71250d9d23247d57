"""Masks: as many as asked for, drawn by their key alone, never of special tokens, words whole."""

import numpy as np
import pytest

from longspan.corpus.spelling import Spelling
from longspan.errors import InputError
from longspan.recipes.masking import Key, Masked, Masking, uniform
from longspan.shapes import IntArray
from unit.corpus.small import text, tokenizer

SPELLING = Spelling.of(tokenizer())
MASK = tokenizer().mask or 0
IDS = tokenizer().encode(" ".join(text(number) for number in range(40))).ids


def masked(masking: Masking, key: Key = Key(0, 0, 0), ids: IntArray = IDS) -> Masked:  # noqa: B008
    return masking.apply(ids, SPELLING, MASK, key)


def near(share: float, wanted: float, count: int) -> bool:
    """Whether a share of so many draws is within five standard deviations of what it should be."""
    return bool(abs(share - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / count))


@pytest.mark.parametrize("rate", [0.15, 0.3])
def test_of_the_chosen_tokens_most_are_masked_some_random_and_some_kept(rate: float) -> None:
    found = [masked(Masking(rate=rate), Key(0, epoch, 3)) for epoch in range(10)]
    ordinary = len(IDS) - 2
    chosen = np.concatenate([one.ids[one.rows] for one in found])
    targets = np.concatenate([one.targets for one in found])
    assert abs(len(chosen) / 10 - rate * ordinary) <= 1
    assert near(np.mean(chosen == MASK), 0.8, len(chosen))
    kept, size = chosen == targets, SPELLING.ordinary.size
    assert near(np.mean(kept), 0.1 + 0.1 / size, len(chosen))
    others = chosen[(chosen != MASK) & ~kept]
    assert not SPELLING.special[others].any()
    assert np.unique(others).size > 0.6 * min(size, len(others))


def test_only_chosen_tokens_change_and_special_ones_are_never_chosen() -> None:
    for example in range(20):
        found = masked(Masking(rate=0.5), Key(1, 0, example), IDS[-50:])
        rest = np.setdiff1d(np.arange(50), found.rows)
        np.testing.assert_array_equal(found.ids[rest], IDS[-50:][rest])
        np.testing.assert_array_equal(found.targets, IDS[-50:][found.rows])
        assert not SPELLING.special[found.targets].any()
        assert 49 not in found.rows
        assert (np.diff(found.rows) > 0).all()


def test_every_token_is_chosen_equally_often() -> None:
    ids = IDS[:42]
    counts = np.zeros(42)
    for example in range(4000):
        counts[masked(Masking(), Key(5, 2, example), ids).rows] += 1
    assert counts[0] == 0
    assert all(near(count / 4000, 0.15, 4000) for count in counts[1:])


def test_words_are_masked_whole_at_the_same_rate() -> None:
    words = SPELLING.words(IDS)
    found = masked(Masking(unit="word"))
    chosen = np.isin(np.arange(len(IDS)), found.rows)
    sizes = np.bincount(words)
    assert np.isin(np.bincount(words, weights=chosen) / sizes, [0, 1]).all()
    assert (sizes > 1).any()
    assert near(len(found.rows) / (len(IDS) - 2), 0.15, sizes.size)


def test_the_same_key_draws_the_same_masks_and_every_other_key_others() -> None:
    base = Key(7, 3, 11)
    first = masked(Masking(), base)
    for again in (masked(Masking(), base), masked(Masking(), Key(*base))):
        for a, b in zip(first, again, strict=True):
            np.testing.assert_array_equal(a, b)
    for other in (
        base._replace(seed=8),
        base._replace(epoch=4),
        base._replace(example=12),
        base._replace(purpose=1),
    ):
        assert not np.array_equal(masked(Masking(), other).rows, first.rows)


def test_draws_are_those_of_the_generator_for_ever() -> None:
    np.testing.assert_allclose(
        uniform(Key(0, 1, 2), 3), [0.7041897531226062, 0.45607561894022654, 0.4307815888617443], atol=1e-9
    )


@pytest.mark.parametrize(("length", "rate", "count"), [(1, 0.15, 1), (3, 0.01, 1), (4, 1.0, 4), (0, 0.5, 0)])
def test_short_examples_have_at_least_one_mask_and_empty_ones_none(
    length: int, rate: float, count: int
) -> None:
    ids = np.concatenate([IDS[:1], IDS[1 : 1 + length], IDS[-1:]])
    assert len(masked(Masking(rate=rate), ids=ids).rows) == count


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"unit": "sentence"}, "`masking` must be one of token, word"),
        ({"rate": 0.0}, "`rate` must be above 0"),
        ({"rate": 1.5}, "`rate` must be from 0 to 1"),
        ({"masked": 0.9, "random": 0.2}, "`random` must be at most 0.1"),
    ],
)
def test_impossible_masking_is_refused(fields: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Masking(**fields)  # type: ignore[arg-type]
