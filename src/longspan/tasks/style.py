"""How a model writes: what was asked for, what its folder says, and else what the papers do."""

from collections.abc import Mapping
from typing import Any

from longspan.errors import InputError, whole
from longspan.generation.config import SAMPLING, GenerationConfig
from longspan.generation.settings import stated_options, without_effect

PAPERS = {"num_beams": 4, "length_penalty": 2.0, "no_repeat_ngram_size": 3, "early_stopping": True}
"""As the papers write summaries, where a folder says nothing about it."""
MAX_NEW_TOKENS = 256
"""Tokens of a summary, where nobody says anything about it."""
STYLE = frozenset({*PAPERS, "max_new_tokens", "min_new_tokens", "do_sample"})
"""A folder that says anything of these is followed in all of them."""
TOP_K = 50
"""As transformers samples, where a folder says that it samples, but not from how many words."""


def own_style(config: Mapping[str, Any], generation: Mapping[str, Any]) -> dict[str, Any]:
    """How a model writes by its config.json and generation_config.json, else as papers have it.

    A folder that says something about its style is followed as transformers follows it, in all but lengths.
    """
    stated: dict[str, Any] = {}
    for part in (config, _usual(config), generation):
        stated |= stated_options(part)
    top_k = stated.pop("top_k", TOP_K if stated.get("do_sample") else 0)
    stated |= {"top_k": top_k} if top_k else {}  # in files 0 is off
    return stated if stated.keys() & STYLE else PAPERS | stated


def _usual(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What config.json says of summaries alone."""
    tasks = config.get("task_specific_params")
    usual = tasks.get("summarization") if isinstance(tasks, Mapping) else None
    return usual if isinstance(usual, Mapping) else {}


def unfollowed(config: Mapping[str, Any], generation: Mapping[str, Any]) -> dict[str, Any]:
    """What config.json and generation_config.json ask for in vain."""
    return without_effect({**config, **_usual(config)}, generation)


def combined(
    chosen: Mapping[str, Any], own: Mapping[str, Any], *, positions: int, vocab: int
) -> GenerationConfig:
    """What was asked for, and else the model's own way, which gives way where the two do not go together.

    >>> own = {"num_beams": 4, "min_new_tokens": 56, "max_new_tokens": 142}
    >>> combined({"max_new_tokens": 20}, own, positions=1024, vocab=9).min_new_tokens
    20
    """
    chosen = {name: value for name, value in chosen.items() if value is not None}
    usual = {"num_beams": 1, "max_new_tokens": MAX_NEW_TOKENS, "min_new_tokens": 0}
    config = usual | {"num_return_sequences": 1, "do_sample": False} | dict(own)
    try:
        names = "max_new_tokens", "min_new_tokens", "num_beams"
        most, least, beams = (whole(name, config[name], 0) for name in names)
        if chosen.get("max_new_tokens") is not None:
            config["min_new_tokens"] = min(least, whole("max_new_tokens", chosen["max_new_tokens"], 1))
        floor = whole("min_new_tokens", chosen.get("min_new_tokens", 0), 0)
        config["max_new_tokens"] = min(positions, max(most, floor))
        if chosen.get("do_sample"):
            config["num_beams"] = 1
        elif "num_return_sequences" in chosen and (beams > 1 or not config["do_sample"]):
            texts = whole("num_return_sequences", chosen["num_return_sequences"], 1)
            config["num_beams"] = max(beams, texts)
        config |= chosen
        if not config["do_sample"]:
            config = {name: value for name, value in config.items() if name not in SAMPLING or name in chosen}
        return GenerationConfig().but(**config).fitting(positions=positions, vocab=vocab)
    except InputError as error:
        if any(f"`{name}`" in str(error) for name in own if name not in chosen):
            raise InputError(f"{error} The model's own settings are {dict(own)}.") from None
        raise
