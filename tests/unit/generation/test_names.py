"""Options of writing may be called what transformers calls them."""

from typing import Any

import pytest

from longspan.errors import InputError
from longspan.generation.names import NAMES, SAME, stated, translated
from longspan.generation.options import Writing


def test_every_name_is_translated_to_an_option() -> None:
    known = vars(Writing())
    assert {*NAMES.values(), *SAME} <= set(known)
    assert not set(NAMES) & set(known)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"num_beams": 4, "no_repeat": 3}, {"beams": 4, "no_repeat": 3}),
        ({"max_length": 142, "min_length": 56}, {"longest": 141, "shortest": 55}),
        ({"max_new_tokens": 142, "min_length": 0}, {"longest": 142, "shortest": 0}),
        ({"num_beams": None, "top_k": None}, {"top_k": None}),
        ({"longest": 141, "max_length": 142}, {"longest": 141}),
    ],
)
def test_lengths_of_transformers_may_count_the_start(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert translated(given) == expected


def test_two_names_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(InputError, match=r"`longest` and `max_length` must agree.* Give one of the two"):
        translated({"longest": 142, "max_length": 142})
    with pytest.raises(InputError, match="`max_length` must be a whole number"):
        translated({"max_length": "long"})


def test_of_a_config_only_what_is_about_writing_is_taken() -> None:
    config = {"d_model": 768, "num_beams": 4, "max_length": 142, "max_new_tokens": 99, "top_k": None}
    assert stated(config | {"min_length": 56, "repetition_penalty": 2.0}) == {
        "beams": 4,
        "longest": 99,
        "shortest": 55,
    }
