"""What files and calls say about generation: lengths, names that Longspan has, and those that it has not."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from longspan.errors import InputError, whole
from longspan.generation.config import GenerationConfig

NAMES = tuple(option.name for option in fields(GenerationConfig))
OURS = "length_penalty_form"
"""The only option that transformers has not."""
TOTAL_LENGTHS = {"max_length": "max_new_tokens", "min_length": "min_new_tokens"}
"""Options of transformers that count the start token, too."""
OPTIONS = frozenset({*NAMES, *TOTAL_LENGTHS})
OLD_NAMES = ("force_bos_token_to_be_generated",)
"""What the oldest files call `forced_bos_token_id`, the token being `bos_token_id`."""
UNSUPPORTED: dict[str, Any] = {
    "constraints": None,
    "diversity_penalty": 0.0,
    "dola_layers": None,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "force_words_ids": None,
    "guidance_scale": 1.0,
    "max_time": None,
    "num_beam_groups": 1,
    "penalty_alpha": 0.0,
    "remove_invalid_values": False,
    "sequence_bias": None,
    "stop_strings": None,
    "token_healing": False,
    "top_h": None,
    "watermarking_config": None,
}
"""Options of transformers that Longspan has not, with the values that change nothing."""
SILENT = frozenset(
    {
        *("_commit_hash", "_from_model_config", "transformers_version", "pad_token_id", "bos_token_id"),
        *("assistant_confidence_threshold", "assistant_early_exit", "assistant_ensemble_weight"),
        *("assistant_lookbehind", "cache_config", "cache_implementation", "compile_config"),
        *("continuous_batching_config", "disable_compile", "is_assistant", "low_memory", "max_cache_len"),
        *("max_matching_ngram_size", "num_assistant_tokens", "num_assistant_tokens_schedule"),
        *("output_attentions", "output_hidden_states", "output_logits", "output_scores"),
        *("prefill_chunk_size", "prompt_lookup_num_tokens", "return_dict_in_generate", "speculation_type"),
        *("target_lookbehind", "use_cache", "use_mtp", "trust_remote_code"),
    }
)
"""Options of transformers that change no text: what is returned, and how fast."""


def new_token_lengths(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with lengths in new tokens; None is as good as left out.

    >>> new_token_lengths({"num_beams": 4, "max_length": 142})
    {'num_beams': 4, 'max_new_tokens': 141}
    """
    lengths: dict[str, Any] = {}
    for name, value in options.items():
        if value is None:
            continue
        option = TOTAL_LENGTHS.get(name, name)
        count = max(0, whole(name, value, 0) - 1) if name in TOTAL_LENGTHS else value
        if option in lengths and lengths[option] != count:
            both = " and ".join(f"`{one}`" for one in options if TOTAL_LENGTHS.get(one, one) == option)
            raise InputError(f"{both} must agree, but do not. Give one of the two.")
        lengths[option] = count
    return lengths


def stated_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a config.json or generation_config.json says about generation.

    >>> stated_options({"num_beams": 4, "max_length": 142, "max_new_tokens": 99, "d_model": 768})
    {'num_beams': 4, 'max_new_tokens': 99}
    """
    names = [name for name in NAMES if name != OURS]
    stated = {name: config[name] for name in (*names, *TOTAL_LENGTHS) if config.get(name) is not None}
    for total, new in TOTAL_LENGTHS.items():
        if new in stated:
            stated.pop(total, None)
    if any(config.get(name) is True for name in OLD_NAMES):
        stated.setdefault("forced_bos_token_id", config.get("bos_token_id", 0))
    return new_token_lengths(stated)


def without_effect(config: Mapping[str, Any], generation: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a config.json and a generation_config.json that Longspan cannot follow.

    Of config.json, which holds anything, only options that transformers has are told.

    >>> without_effect({"num_beam_groups": 1, "d_model": 16}, {"num_beams": 4, "stop_strings": ["."]})
    {'stop_strings': ['.']}
    """
    known = {name: config[name] for name in UNSUPPORTED if name in config}
    all_settings = known | dict(generation)
    return {
        name: value
        for name, value in all_settings.items()
        if name not in OPTIONS | SILENT and value is not None and value != UNSUPPORTED.get(name)
    }
