"""Tokens one after another: greedy, sampled, and only with options that need no past."""

from dataclasses import dataclass, field
from itertools import islice

import pytest
import torch
from torch import Tensor

from longspan.errors import InputError
from longspan.generation.config import GenerationConfig
from longspan.generation.streaming import stream


@dataclass
class Counting:
    """After token t comes t + 1 of ten; t + 2 is nearly as likely."""

    heard: list[int] = field(default_factory=list)

    def read(self, ids: Tensor) -> Tensor:
        self.heard += ids.tolist()
        scores = torch.zeros(len(ids), 10)
        rows = torch.arange(len(ids))
        scores[rows, (ids + 1) % 10] = 5.0
        scores[rows, (ids + 2) % 10] = 4.5
        return scores


PROMPT = torch.tensor([3, 4])


def test_the_likeliest_follows_and_the_last_is_not_read() -> None:
    text = Counting()
    assert list(stream(text, PROMPT, GenerationConfig(max_new_tokens=4))) == [5, 6, 7, 8]
    assert text.heard == [3, 4, 5, 6, 7]


def test_without_a_limit_it_goes_on_as_long_as_it_is_asked() -> None:
    text = Counting()
    assert list(islice(stream(text, PROMPT), 25))[-1] == 9
    assert len(text.heard) == 2 + 24


def test_the_same_seed_gives_the_same_text_and_another_another() -> None:
    config = GenerationConfig(max_new_tokens=50, do_sample=True)

    def drawn(seed: int) -> list[int]:
        return list(stream(Counting(), PROMPT, config, generator=torch.Generator().manual_seed(seed)))

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


@pytest.mark.parametrize("options", [{"top_k": 1}, {"top_p": 0.3}, {"temperature": 1e-3}])
def test_a_narrow_choice_is_the_likeliest(options: dict[str, float]) -> None:
    config = GenerationConfig(max_new_tokens=9, do_sample=True, **options)  # type: ignore[arg-type]
    assert list(stream(Counting(), PROMPT, config)) == [5, 6, 7, 8, 9, 0, 1, 2, 3]


def test_two_words_are_drawn_as_often_as_they_are_likely() -> None:
    config = GenerationConfig(max_new_tokens=2000, do_sample=True, top_k=2)
    tokens = list(stream(Counting(), PROMPT, config, generator=torch.Generator().manual_seed(0)))
    steps = [(b - a) % 10 for a, b in zip([4, *tokens], tokens, strict=False)]
    assert set(steps) == {1, 2}
    share = torch.tensor([5.0, 4.5]).softmax(0)[0]
    assert abs(steps.count(1) / 2000 - float(share)) < 0.04


def test_what_needs_the_past_is_refused() -> None:
    with pytest.raises(InputError, match=r"`no_repeat_ngram_size` must be left as it is, but is 3\. Streams"):
        stream(Counting(), PROMPT, GenerationConfig(no_repeat_ngram_size=3))


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(InputError, match="`prompt` must be at least one token long, but is 0"):
        stream(Counting(), PROMPT[:0])


def test_scores_that_are_no_numbers_are_told() -> None:
    class Broken:
        def read(self, ids: Tensor) -> Tensor:
            return torch.full((len(ids), 10), torch.nan)

    with pytest.raises(InputError, match=r"`scores` must be numbers, but is nan\. The weights"):
        next(stream(Broken(), PROMPT))
