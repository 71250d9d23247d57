"""Options of writing by the names that transformers has for them."""

from collections.abc import Mapping
from typing import Any

from longspan.errors import InputError, whole

NAMES = {
    "num_beams": "beams",
    "max_new_tokens": "longest",
    "max_length": "longest",
    "min_new_tokens": "shortest",
    "min_length": "shortest",
    "no_repeat_ngram_size": "no_repeat",
    "bad_words_ids": "bad_words",
    "forced_bos_token_id": "first_id",
    "forced_eos_token_id": "last_id",
    "do_sample": "sample",
    "num_return_sequences": "count",
}
SAME = ("length_penalty", "early_stopping", "temperature", "top_k", "top_p")
COUNTING_THE_START = ("max_length", "min_length")
"""Lengths that count what the decoder is started by."""


def translated(given: Mapping[str, Any]) -> dict[str, Any]:
    """The same options under our names; None under transformers' names is as good as left out.

    >>> translated({"num_beams": 4, "max_length": 142, "no_repeat": 3})
    {'beams': 4, 'longest': 141, 'no_repeat': 3}
    """
    found: dict[str, Any] = {}
    source: dict[str, str] = {}
    for name, value in given.items():
        ours = NAMES.get(name, name)
        if ours != name and value is None:
            continue
        if name in COUNTING_THE_START:
            value = max(0, whole(name, value, 0) - 1)
        if ours in found and found[ours] != value:
            raise InputError(f"`{source[ours]}` and `{name}` must agree, but do not. Give one of the two.")
        found[ours], source[ours] = value, name
    return found


def stated(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a config.json or generation_config.json says about writing, under our names.

    >>> stated({"num_beams": 4, "max_length": 142, "max_new_tokens": 99, "d_model": 768})
    {'beams': 4, 'longest': 99}
    """
    said = {name: config[name] for name in (*NAMES, *SAME) if config.get(name) is not None}
    for new, old in (("max_new_tokens", "max_length"), ("min_new_tokens", "min_length")):
        if new in said:
            said.pop(old, None)
    return translated(said)
