"""Options that contradict each other, or that there are not."""

from typing import Any

import pytest

from longspan.errors import InputError
from longspan.generation.options import Writing


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"beams": 0}, "`beams` must be at least 1, but is 0."),
        ({"beams": 2.0}, "`beams` must be a whole number"),
        ({"longest": 0}, "`longest` must be at least 1"),
        ({"longest": 3, "shortest": 4}, "`shortest` must be at most `longest`, 3, but is 4."),
        ({"count": 2}, "`count` must be at most the number of beams, 1, but is 2."),
        ({"sample": True, "beams": 2}, "`beams` must be 1 where words are drawn"),
        ({"sample": "yes"}, "`sample` must be one of True, False"),
        ({"temperature": 0.5}, "sample=True"),
        ({"sample": True, "temperature": 0.0}, "`temperature`"),
        ({"sample": True, "top_k": 0}, "`top_k` must be at least 1"),
        ({"sample": True, "top_p": 1.5}, "`top_p`"),
        ({"early_stopping": "soon"}, "`early_stopping` must be one of True, False, 'never'"),
        ({"early_stopping": 1}, "`early_stopping`"),
        ({"penalty_form": "bert"}, "`penalty_form` must be one of 'hf', 'gnmt'"),
        ({"length_penalty": float("nan")}, "`length_penalty` must be a number"),
        ({"bad_words": ((),)}, "`bad_words` must be sequences of sequences of token numbers"),
        ({"bad_words": (5,)}, "`bad_words`"),
        ({"bad_words": (("five",),)}, "`bad_words` must be a whole number"),
        ({"first_id": -1}, "`first_id` must be at least 0"),
        ({"last_id": "end"}, "`last_id` must be a whole number"),
    ],
    ids=str,
)
def test_contradictory_options_are_told(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as error:
        Writing(**wrong)
    assert told in str(error.value)


def test_an_unknown_option_is_told_with_the_nearest_one() -> None:
    with pytest.raises(InputError, match=r"There is no option `beems`\. Did you mean beams\?"):
        Writing().but(beems=4)
    with pytest.raises(InputError, match=r"There is no option `xyz`\. Options are beams, longest"):
        Writing().but(xyz=4)


def test_options_are_changed_one_by_one_and_checked_again() -> None:
    changed = Writing(beams=4).but(count=3, bad_words=[[5], [6, 7]])
    assert (changed.beams, changed.count, changed.bad_words) == (4, 3, ((5,), (6, 7)))
    with pytest.raises(InputError, match="`count`"):
        changed.but(beams=2)
