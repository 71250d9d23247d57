"""Options of generation have transformers' names, and lengths may count the start token."""

from typing import Any

import pytest
import transformers

from longspan.errors import InputError
from longspan.generation.config import NAMES, TOTAL_LENGTHS, new_token_lengths, stated_options


def test_every_option_but_one_is_transformers() -> None:
    known = vars(transformers.GenerationConfig())
    assert {*NAMES, *TOTAL_LENGTHS} - set(known) == {"length_penalty_form"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"num_beams": 4, "no_repeat_ngram_size": 3}, {"num_beams": 4, "no_repeat_ngram_size": 3}),
        ({"max_length": 142, "min_length": 56}, {"max_new_tokens": 141, "min_new_tokens": 55}),
        ({"max_new_tokens": 142, "min_length": 0}, {"max_new_tokens": 142, "min_new_tokens": 0}),
        ({"num_beams": None, "top_k": None}, {}),
        ({"max_new_tokens": 141, "max_length": 142}, {"max_new_tokens": 141}),
    ],
)
def test_lengths_may_count_the_start_token(options: dict[str, Any], expected: dict[str, Any]) -> None:
    assert new_token_lengths(options) == expected


def test_two_lengths_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"`max_new_tokens` and `max_length` must agree.* Give one of the two"
    ):
        new_token_lengths({"max_new_tokens": 142, "max_length": 142})
    with pytest.raises(InputError, match="`max_length` must be a whole number"):
        new_token_lengths({"max_length": "long"})


def test_of_a_config_only_what_is_about_generation_is_taken() -> None:
    config = {"d_model": 768, "num_beams": 4, "max_length": 142, "max_new_tokens": 99, "top_k": None}
    assert stated_options(config | {"min_length": 56, "repetition_penalty": 2.0}) == {
        "num_beams": 4,
        "max_new_tokens": 99,
        "min_new_tokens": 55,
    }
