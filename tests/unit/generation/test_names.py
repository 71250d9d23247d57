"""Options of generation have transformers' names, and lengths may count the start token."""

from typing import Any

import pytest
import transformers

from longspan.errors import InputError
from longspan.generation.settings import (
    NAMES,
    OPTIONS,
    SILENT,
    TOTAL_LENGTHS,
    UNSUPPORTED,
    new_token_lengths,
    stated_options,
    without_effect,
)


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
    assert stated_options(config | {"min_length": 56, "repetition_penalty": 2.0, "top_h": 0.5}) == {
        "num_beams": 4,
        "max_new_tokens": 99,
        "min_new_tokens": 55,
        "repetition_penalty": 2.0,
    }


def test_the_first_word_may_be_forced_as_old_files_of_bart_say_it() -> None:
    old = {"force_bos_token_to_be_generated": True, "bos_token_id": 7}
    assert stated_options(old) == {"forced_bos_token_id": 7}
    assert stated_options(old | {"forced_bos_token_id": 3}) == {"forced_bos_token_id": 3}


def test_every_option_of_transformers_is_followed_or_told_of_or_changes_no_text() -> None:
    known = {name for name in vars(transformers.GenerationConfig()) if name != "_original_object_hash"}
    assert known - OPTIONS - UNSUPPORTED.keys() - SILENT == set()
    assert not OPTIONS & (UNSUPPORTED.keys() | SILENT)


def test_settings_without_effect_are_named_unless_they_are_neutral() -> None:
    usual = transformers.GenerationConfig()._get_default_generation_params()
    assert without_effect(usual, usual | {"output_scores": True, "transformers_version": "5"}) == {}
    neutral: dict[str, Any] = {"guidance_scale": 1, "top_h": None, "token_healing": False}
    assert without_effect(neutral, neutral) == {}
    config = {"num_beam_groups": 2, "d_model": 16, "diversity_penalty": 0.5, "future_option": 3}
    assert without_effect(config, {"diversity_penalty": 0.0, "stop_strings": ["."], "future_option": 3}) == {
        "num_beam_groups": 2,
        "stop_strings": ["."],
        "future_option": 3,
    }
