"""How texts are generated: the options of transformers' GenerationConfig that Longspan has."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from longspan.errors import InputError, bad, no_option, whole
from longspan.families.config import number

EARLY = (True, False, "never")
FORMS = ("hf", "gnmt")


@dataclass(frozen=True, kw_only=True)
class GenerationConfig:
    """Options of `generate`; lengths num_return_sequences the tokens that are written, the last one included.

    >>> GenerationConfig(num_beams=4).but(num_return_sequences=2).do_sample
    False
    """

    num_beams: int = 1
    "Beams of the search; 1: greedy, or sampling."
    max_new_tokens: int | None = None
    "None: as many as the decoder has positions."
    min_new_tokens: int = 0
    "No end token before; a text in which nothing else is allowed stays shorter."
    length_penalty: float = 1.0
    "A text's score is the sum of its log-probabilities over its length to this power."
    length_penalty_form: str = "hf"
    '"hf": length ** penalty; "gnmt": ((5 + length) / 6) ** penalty (Wu et al. 2016).'
    early_stopping: bool | str = False
    """True: stop when as many texts are finished as there are beams; False: when the unfinished ones score
    worse than all of those now; "never": when they can no longer become better."""
    no_repeat_ngram_size: int = 0
    """No n-gram of this size occurs twice; 0: no such rule. The start token counts: with 1 a model that is
    started by its end token never ends, as in transformers."""
    bad_words_ids: tuple[tuple[int, ...], ...] = ()
    "Sequences of tokens that never occur; the end token alone is not forbidden, as in transformers."
    forced_bos_token_id: int | None = None
    "The first token, whatever its score and the other processors."
    forced_eos_token_id: int | None = None
    "The last token of a text that reaches its limit, whatever its score and the other processors."
    do_sample: bool = False
    "Sample from the probabilities."
    temperature: float = 1.0
    top_k: int | None = None
    "Sample from so many words."
    top_p: float | None = None
    "Sample from the likeliest words that together have this probability."
    num_return_sequences: int = 1
    "Texts for each document: the best beams, or so many samples."

    def __post_init__(self) -> None:
        for name in ("num_beams", "num_return_sequences"):
            whole(name, getattr(self, name), 1, most=1024)
        for name in ("min_new_tokens", "no_repeat_ngram_size"):
            whole(name, getattr(self, name), 0)
        for name in ("forced_bos_token_id", "forced_eos_token_id"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), 0)
        if self.max_new_tokens is not None:
            whole("max_new_tokens", self.max_new_tokens, 1)
            if self.min_new_tokens > self.max_new_tokens:
                most = f"at most `max_new_tokens`, {self.max_new_tokens}"
                raise bad("min_new_tokens", most, self.min_new_tokens)
        number("length_penalty", self.length_penalty, -10.0, 10.0)
        _one_of("length_penalty_form", self.length_penalty_form, FORMS)
        _one_of("early_stopping", self.early_stopping, EARLY)
        object.__setattr__(self, "bad_words_ids", _sequences(self.bad_words_ids))
        self._check_sampling()

    def _check_sampling(self) -> None:
        _one_of("do_sample", self.do_sample, (True, False))
        if self.do_sample:
            if self.num_beams > 1:
                repair = "Ask for several texts by `num_return_sequences`."
                raise bad("num_beams", "1 where words are sampled", self.num_beams, repair)
        elif (self.temperature, self.top_k, self.top_p) != (1.0, None, None):
            raise bad("temperature, top_k and top_p", "given with do_sample=True", False)
        elif self.num_return_sequences > self.num_beams:
            most = f"at most `num_beams`, {self.num_beams}"
            raise bad("num_return_sequences", most, self.num_return_sequences)
        number("temperature", self.temperature, 1e-6, 1e6)
        if self.top_k is not None:
            whole("top_k", self.top_k, 1)
        if self.top_p is not None:
            number("top_p", self.top_p, 1e-9, 1.0)

    def but(self, **changes: Any) -> "GenerationConfig":
        """The same options with some changed."""
        names = [field.name for field in fields(self)]
        for name in changes:
            if name not in names:
                raise no_option(name, names)
        return replace(self, **changes)

    def fitting(self, *, positions: int, vocab: int) -> "GenerationConfig":
        """The same options with `max_new_tokens` filled in, if a model of that size can do it."""
        for name in ("max_new_tokens", "min_new_tokens"):
            if (getattr(self, name) or 0) > positions:
                most = f"at most {positions}, as many as there are positions"
                raise bad(name, most, getattr(self, name))
        forced = [(name, getattr(self, name)) for name in ("forced_bos_token_id", "forced_eos_token_id")]
        for name, token in [
            *forced,
            *(("bad_words_ids", token) for word in self.bad_words_ids for token in word),
        ]:
            if token is not None and token >= vocab:
                raise bad(name, f"below {vocab}, the number of words", token)
        return replace(self, max_new_tokens=positions if self.max_new_tokens is None else self.max_new_tokens)

    def penalty(self, length: int) -> float:
        """What the score of a text of that length is divided by."""
        base = length if self.length_penalty_form == "hf" else (5 + length) / 6
        return float(base**self.length_penalty)


NAMES = tuple(option.name for option in fields(GenerationConfig))
TOTAL_LENGTHS = {"max_length": "max_new_tokens", "min_length": "min_new_tokens"}
"""Options of transformers that count the start token, too."""
OPTIONS = frozenset({*NAMES, *TOTAL_LENGTHS})


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
    names = [name for name in NAMES if name != "length_penalty_form"]
    stated = {name: config[name] for name in (*names, *TOTAL_LENGTHS) if config.get(name) is not None}
    for total, new in TOTAL_LENGTHS.items():
        if new in stated:
            stated.pop(total, None)
    return new_token_lengths(stated)


def _one_of(name: str, value: Any, known: tuple[Any, ...]) -> None:
    if not any(value is one or (isinstance(value, str) and value == one) for one in known):
        raise bad(name, f"one of {', '.join(map(repr, known))}", value)


def _sequences(words: Any) -> tuple[tuple[int, ...], ...]:
    if isinstance(words, Iterable) and all(isinstance(word, Iterable) and word for word in words):
        return tuple(tuple(whole("bad_words_ids", token, 0) for token in word) for word in words)
    raise bad("bad_words_ids", "sequences of sequences of token numbers", words)
