"""How texts are generated: the options of transformers' GenerationConfig that Longspan has."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from longspan.errors import bad, no_option, number, whole

EARLY = (True, False, "never")
FORMS = ("hf", "gnmt")
SAMPLING = {"temperature": 1.0, "top_k": None, "top_p": None, "min_p": None, "typical_p": None}
"""What only sampling reads, and the values that change nothing."""
TOKENS = (
    *("forced_bos_token_id", "forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens"),
    *("eos_token_id", "decoder_start_token_id"),
)
"""Options that are tokens."""


@dataclass(frozen=True, kw_only=True)
class GenerationConfig:
    """Options of `generate`; lengths count the tokens that are written, the last one included.

    >>> GenerationConfig(num_beams=4).but(num_return_sequences=2).do_sample
    False
    """

    num_beams: int = 1
    "Beams of the search; 1: greedy, or sampling. With `do_sample` the candidates of each step are sampled."
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
    repetition_penalty: float = 1.0
    "The scores of words that were written are divided by this, or multiplied if they are negative."
    encoder_repetition_penalty: float = 1.0
    "The scores of the document's words are multiplied by this, or divided if they are negative."
    no_repeat_ngram_size: int = 0
    """No n-gram of this size occurs twice; 0: no such rule. The start token counts: with 1 a model that is
    started by its end token never ends, as in transformers."""
    encoder_no_repeat_ngram_size: int = 0
    "No n-gram of this size of the document is written; 0: no such rule."
    bad_words_ids: tuple[tuple[int, ...], ...] = ()
    "Sequences of tokens that never occur; the end token alone is not forbidden, as in transformers."
    forced_bos_token_id: int | None = None
    "The first token, whatever its score and the other processors."
    forced_eos_token_id: int | tuple[int, ...] | None = None
    "The last token of a text that reaches its limit, or several to choose from, whatever its score."
    exponential_decay_length_penalty: tuple[int, float] | None = None
    "(start, factor): after so many tokens the end becomes likelier by the factor with each token."
    suppress_tokens: tuple[int, ...] = ()
    "Tokens that never occur; a forced one neither, and the text ends there."
    begin_suppress_tokens: tuple[int, ...] = ()
    "Tokens that are never the first one, or the first after a forced one."
    renormalize_logits: bool = False
    "The probabilities of what is still allowed sum to 1 in every step."
    eos_token_id: int | tuple[int, ...] | None = None
    "Tokens that end a text; None: the model's."
    decoder_start_token_id: int | None = None
    "The token before the first; None: the model's."
    do_sample: bool = False
    "Sample from the probabilities."
    temperature: float = 1.0
    top_k: int | None = None
    "Sample from so many words."
    top_p: float | None = None
    "Sample from the likeliest words that together have this probability."
    min_p: float | None = None
    "Sample from the words that are at least so likely, relative to the likeliest."
    typical_p: float | None = None
    "Sample from the most typical words that together have this probability (Meister et al. 2022)."
    num_return_sequences: int = 1
    "Texts for each document: the best beams, or so many samples."

    def __post_init__(self) -> None:
        for name in ("num_beams", "num_return_sequences"):
            whole(name, getattr(self, name), 1, most=1024)
        for name in ("min_new_tokens", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size"):
            whole(name, getattr(self, name), 0)
        for name in ("forced_bos_token_id", "decoder_start_token_id"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), 0)
        if self.max_new_tokens is not None:
            whole("max_new_tokens", self.max_new_tokens, 1)
            if self.min_new_tokens > self.max_new_tokens:
                most = f"at most `max_new_tokens`, {self.max_new_tokens}"
                raise bad("min_new_tokens", most, self.min_new_tokens)
        for name in ("repetition_penalty", "encoder_repetition_penalty"):
            number(name, getattr(self, name), 1e-6, 1e6)
        number("length_penalty", self.length_penalty, -10.0, 10.0)
        _one_of("length_penalty_form", self.length_penalty_form, FORMS)
        _one_of("early_stopping", self.early_stopping, EARLY)
        _one_of("renormalize_logits", self.renormalize_logits, (True, False))
        self._check_tokens()
        self._check_sampling()

    def _check_tokens(self) -> None:
        for name in ("suppress_tokens", "begin_suppress_tokens", "forced_eos_token_id", "eos_token_id"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _tokens(name, getattr(self, name)))
        if self.eos_token_id == ():
            raise bad("eos_token_id", "at least one token number", ())
        object.__setattr__(self, "bad_words_ids", _sequences(self.bad_words_ids))
        decay = self.exponential_decay_length_penalty
        if decay is not None:
            name, pair = "exponential_decay_length_penalty", tuple(_items(decay))
            if len(pair) != 2:
                raise bad(name, "a number of tokens and a factor", decay)
            checked = whole(name, pair[0], 0), float(number(name, pair[1], 1e-6, 1e6))
            object.__setattr__(self, name, checked)

    def _check_sampling(self) -> None:
        _one_of("do_sample", self.do_sample, (True, False))
        if not self.do_sample and any(getattr(self, name) != usual for name, usual in SAMPLING.items()):
            *names, last = SAMPLING
            raise bad(f"{', '.join(names)} and {last}", "given with do_sample=True", False)
        beams = self.num_beams
        if self.num_return_sequences > beams and not (self.do_sample and beams == 1):
            raise bad("num_return_sequences", f"at most `num_beams`, {beams}", self.num_return_sequences)
        number("temperature", self.temperature, 1e-6, 1e6)
        if self.top_k is not None:
            whole("top_k", self.top_k, 1)
        for name in ("top_p", "min_p", "typical_p"):
            if getattr(self, name) is not None:
                number(name, getattr(self, name), 0.0 if name == "min_p" else 1e-9, 1.0)

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
        for name, token in self._token_ids():
            if token >= vocab:
                raise bad(name, f"below {vocab}, the number of words", token)
        return replace(self, max_new_tokens=positions if self.max_new_tokens is None else self.max_new_tokens)

    def _token_ids(self) -> Iterator[tuple[str, int]]:
        for word in self.bad_words_ids:
            yield from (("bad_words_ids", token) for token in word)
        for name in TOKENS:
            yield from ((name, token) for token in _items(getattr(self, name)))

    def penalty(self, length: int) -> float:
        """What the score of a text of that length is divided by."""
        base = length if self.length_penalty_form == "hf" else (5 + length) / 6
        return float(base**self.length_penalty)


def _one_of(name: str, value: Any, known: tuple[Any, ...]) -> None:
    if not any(value is one or (isinstance(value, str) and value == one) for one in known):
        raise bad(name, f"one of {', '.join(map(repr, known))}", value)


def tokens_of(value: int | tuple[int, ...] | None) -> tuple[int, ...]:
    """The tokens of an option that is one, several or none."""
    return tuple(_items(value))


def _items(value: Any) -> Iterable[Any]:
    """The values of a list, of one value, or of None."""
    if value is None:
        return ()
    return value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


def _tokens(name: str, value: Any) -> tuple[int, ...]:
    return tuple(whole(name, token, 0) for token in _items(value))


def _sequences(words: Any) -> tuple[tuple[int, ...], ...]:
    if isinstance(words, Iterable) and all(isinstance(word, Iterable) and word for word in words):
        return tuple(tuple(whole("bad_words_ids", token, 0) for token in word) for word in words)
    raise bad("bad_words_ids", "sequences of sequences of token numbers", words)
