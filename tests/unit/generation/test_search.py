"""Beam search by its definition, on languages small enough to list all texts."""

from typing import Any

import numpy as np
import pytest
import torch

from longspan.errors import InputError
from longspan.generation.config import GenerationConfig
from longspan.generation.logits_process import LogitsProcessor
from longspan.generation.search import BeamSearch, Sampler
from unit.generation.languages import END, START, best, likelihood, steps, texts

VOCAB, LONGEST = 5, 3
ALL = 200
"""BeamSearch: more than there are texts."""


@pytest.mark.parametrize("form", ["hf", "gnmt"])
@pytest.mark.parametrize("penalty", [-1.5, 0.0, 0.6, 1.0, 3.0])
def test_beams_that_hold_all_texts_find_the_best_by_the_penalised_score(form: str, penalty: float) -> None:
    for seed in range(3):
        divisor = {
            n: float(n) ** penalty if form == "hf" else (5 + n) ** penalty / (5 + 1) ** penalty
            for n in range(1, LONGEST + 1)
        }
        listed = [
            (likelihood(text, seed=seed, vocab=VOCAB) / divisor[len(text)], text)
            for text in texts(LONGEST, vocab=VOCAB)
        ]
        options = GenerationConfig(
            num_beams=ALL,
            num_return_sequences=7,
            max_new_tokens=LONGEST,
            length_penalty=penalty,
            length_penalty_form=form,
            early_stopping="never",
        )
        found = best(options, seed=seed, vocab=VOCAB)
        for text, (score, wanted) in zip(found, sorted(listed, reverse=True)[:7], strict=True):
            assert text.tokens == wanted
            assert text.score == pytest.approx(score, rel=1e-5)


@pytest.mark.parametrize("early", [True, False, "never"])
@pytest.mark.parametrize("beams", [2, 3, 6])
def test_what_is_certain_only_grows_and_begins_the_best_text(beams: int, early: Any) -> None:
    early_tokens = 0
    for seed in range(12):
        options = GenerationConfig(
            num_beams=beams, max_new_tokens=14, early_stopping=early, length_penalty=seed % 4 - 1.0
        )
        search, heard = BeamSearch(options, START, [END]), []
        for more in steps(search, seed=seed, vocab=13, ending=seed % 3):
            if more:
                heard.append(search.certain().tolist())
        final = list(search.results()[0].tokens)
        for before, after in zip(heard, [*heard[1:], final], strict=True):
            assert after[: len(before)] == before
        early_tokens += len(heard[-1]) if heard else 0
    assert early_tokens > 5, "something is certain before the end"


def test_no_text_stands_twice_among_few_words() -> None:
    found = best(GenerationConfig(num_beams=6, num_return_sequences=6, max_new_tokens=4), seed=1, vocab=3)
    assert len({text.tokens for text in found}) == 6


def test_a_beam_search_ends_where_nothing_is_allowed() -> None:
    """Every word once, and not the end: then there is nothing left."""
    every = tuple((word,) for word in range(4, 9))
    options = GenerationConfig(
        num_beams=3,
        num_return_sequences=3,
        max_new_tokens=9,
        min_new_tokens=9,
        no_repeat_ngram_size=1,
        bad_words_ids=every,
    )
    found = best(options, seed=3, vocab=9)
    assert [sorted(text.tokens) for text in found] == [[2, 3]] * 2
    assert found[0].tokens != found[1].tokens


def test_a_text_ends_where_no_word_is_allowed() -> None:
    draws = Sampler(GenerationConfig(do_sample=True, num_return_sequences=3), START, [END])
    open_, shut = torch.zeros(5), torch.full((5,), -torch.inf)
    assert draws.advance(torch.stack([open_, shut, open_]), np.arange(3))
    assert len(draws.tokens) <= 2
    assert not draws.advance(torch.stack([shut] * len(draws.tokens)), np.arange(len(draws.tokens)))
    assert draws.results()[1].tokens == ()
    assert len(draws.results()) == 3


@pytest.mark.parametrize(
    "search",
    [BeamSearch(GenerationConfig(num_beams=2), START, [END]), Sampler(GenerationConfig(), START, [END])],
)
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_scores_that_are_no_numbers_are_told(search: BeamSearch | Sampler, value: float) -> None:
    wrong = torch.zeros(1, 7)
    wrong[0, 3] = value
    with pytest.raises(InputError, match=r"`scores` must be numbers, but is (nan|inf).*NaN or infinity"):
        search.advance(wrong, np.zeros(1, np.int64))


def test_draws_are_as_frequent_as_they_are_likely() -> None:
    count = 1000
    draws = Sampler(
        GenerationConfig(
            do_sample=True, num_return_sequences=count, temperature=0.8, top_k=5, top_p=0.9, max_new_tokens=1
        ),
        START,
        [END],
        torch.Generator().manual_seed(0),
    )
    raw = torch.tensor([0.3, -0.5, 1.0, 0.1, -3.0, 0.8, -0.2])
    ruled = LogitsProcessor(draws.config, [END])(raw.repeat(count, 1), draws.tokens)
    draws.advance(ruled, np.arange(count))
    drawn = np.bincount([text.tokens[0] for text in draws.results()], minlength=len(raw))
    likely = (raw / 0.8).softmax(-1).numpy()
    order = np.argsort(-likely)[:5]  # top_k; then the fewest that together have 0.9 of what is left
    share = likely[order] / likely[order].sum()
    kept = order[: int(np.searchsorted(share.cumsum(), 0.9)) + 1]
    expected = count * likely[kept] / likely[kept].sum()
    assert drawn.sum() == drawn[kept].sum() == count
    assert ((drawn[kept] - expected) ** 2 / expected).sum() < 18.5  # chi-square, 4 degrees, p = 0.001
