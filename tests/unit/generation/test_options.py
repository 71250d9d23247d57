"""Options that contradict each other, or that there are not."""

from typing import Any

import pytest

from longspan.errors import InputError
from longspan.generation.config import GenerationConfig


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"num_beams": 0}, "`num_beams` must be at least 1, but is 0."),
        ({"num_beams": 2.0}, "`num_beams` must be a whole number"),
        ({"max_new_tokens": 0}, "`max_new_tokens` must be at least 1"),
        (
            {"max_new_tokens": 3, "min_new_tokens": 4},
            "`min_new_tokens` must be at most `max_new_tokens`, 3, but is 4.",
        ),
        ({"num_return_sequences": 2}, "`num_return_sequences` must be at most `num_beams`, 1, but is 2."),
        (
            {"do_sample": True, "num_beams": 2, "num_return_sequences": 3},
            "`num_return_sequences` must be at most `num_beams`, 2, but is 3.",
        ),
        (
            {"min_p": 0.1},
            "`temperature, top_k, top_p, min_p and typical_p` must be given with do_sample=True",
        ),
        ({"do_sample": True, "min_p": 1.5}, "`min_p` must be from 0 to 1, but is 1.5."),
        ({"repetition_penalty": 0}, "`repetition_penalty` must be from 1e-06 to 1e+06, but is 0."),
        ({"encoder_repetition_penalty": -1.0}, "`encoder_repetition_penalty` must be from"),
        ({"encoder_no_repeat_ngram_size": -1}, "`encoder_no_repeat_ngram_size` must be at least 0"),
        ({"suppress_tokens": ["the"]}, "`suppress_tokens` must be a whole number"),
        ({"begin_suppress_tokens": [-1]}, "`begin_suppress_tokens` must be at least 0"),
        ({"eos_token_id": []}, "`eos_token_id` must be at least one token number"),
        ({"renormalize_logits": 1}, "`renormalize_logits` must be one of True, False"),
        (
            {"exponential_decay_length_penalty": (5,)},
            "`exponential_decay_length_penalty` must be a number of tokens and a factor, but is (5,).",
        ),
        ({"do_sample": "yes"}, "`do_sample` must be one of True, False"),
        ({"temperature": 0.5}, "do_sample=True"),
        ({"do_sample": True, "temperature": 0.0}, "`temperature`"),
        ({"do_sample": True, "top_k": 0}, "`top_k` must be at least 1"),
        ({"do_sample": True, "top_p": 1.5}, "`top_p`"),
        ({"early_stopping": "soon"}, "`early_stopping` must be one of True, False, 'never'"),
        ({"early_stopping": 1}, "`early_stopping`"),
        ({"length_penalty_form": "bert"}, "`length_penalty_form` must be one of 'hf', 'gnmt'"),
        ({"length_penalty": float("nan")}, "`length_penalty` must be a number"),
        ({"bad_words_ids": ((),)}, "`bad_words_ids` must be sequences of sequences of token numbers"),
        ({"bad_words_ids": (5,)}, "`bad_words_ids`"),
        ({"bad_words_ids": (("five",),)}, "`bad_words_ids` must be a whole number"),
        ({"forced_bos_token_id": -1}, "`forced_bos_token_id` must be at least 0"),
        ({"forced_eos_token_id": "end"}, "`forced_eos_token_id` must be a whole number"),
    ],
    ids=str,
)
def test_contradictory_options_are_told(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as error:
        GenerationConfig(**wrong)
    assert told in str(error.value)


def test_an_unknown_option_is_told_with_the_nearest_one() -> None:
    with pytest.raises(InputError, match=r"There is no option `nun_beams`\. Did you mean num_beams\?"):
        GenerationConfig().but(nun_beams=4)
    with pytest.raises(InputError, match=r"There is no option `xyz`\. Options are num_beams, max_new_tokens"):
        GenerationConfig().but(xyz=4)


def test_options_are_changed_one_by_one_and_checked_again() -> None:
    changed = GenerationConfig(num_beams=4).but(num_return_sequences=3, bad_words_ids=[[5], [6, 7]])
    assert (changed.num_beams, changed.num_return_sequences, changed.bad_words_ids) == (4, 3, ((5,), (6, 7)))
    with pytest.raises(InputError, match="`num_return_sequences`"):
        changed.but(num_beams=2)
