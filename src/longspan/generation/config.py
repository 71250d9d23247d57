"""How texts are written."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from longspan.errors import bad, no_option, whole
from longspan.models.config import number

EARLY = (True, False, "never")
FORMS = ("hf", "gnmt")


@dataclass(frozen=True, kw_only=True)
class Writing:
    """Options of `generate`; lengths count the tokens that are written, the last one included.

    >>> Writing(beams=4).but(count=2).sample
    False
    """

    beams: int = 1
    "Texts that are followed at once; 1: the likeliest word is taken each time."
    longest: int | None = None
    "None: as many as there are positions."
    shortest: int = 0
    "The end is not written before; a text in which nothing else is allowed stays shorter."
    length_penalty: float = 1.0
    "A text's score is the sum of its words' logarithms over its length to this power."
    penalty_form: str = "hf"
    '"hf": length ** penalty; "gnmt": ((5 + length) / 6) ** penalty (Wu et al. 2016).'
    early_stopping: bool | str = False
    """True: stop when as many texts are finished as there are beams; False: when what is being written is
    worse than all of them now; "never": when it can no longer become better."""
    no_repeat: int = 0
    """No sequence of so many tokens is written twice; 0: any is. What the decoder is started by counts: with
    1 a model that is started by its end token never ends, as in transformers."""
    bad_words: tuple[tuple[int, ...], ...] = ()
    "Sequences of tokens that are not written; the end token alone is not forbidden, as in transformers."
    first_id: int | None = None
    "The first token, whatever its score and the other rules."
    last_id: int | None = None
    "The last token of a text that becomes too long, whatever its score and the other rules."
    sample: bool = False
    "Draw words by their probabilities."
    temperature: float = 1.0
    top_k: int | None = None
    "Draw from so many words."
    top_p: float | None = None
    "Draw from the likeliest words that together have this probability."
    count: int = 1
    "Texts for each document: the best of the beams, or so many draws."

    def __post_init__(self) -> None:
        for name in ("beams", "count"):
            whole(name, getattr(self, name), 1, most=1024)
        for name in ("shortest", "no_repeat"):
            whole(name, getattr(self, name), 0)
        for name in ("first_id", "last_id"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), 0)
        if self.longest is not None:
            whole("longest", self.longest, 1)
            if self.shortest > self.longest:
                raise bad("shortest", f"at most `longest`, {self.longest}", self.shortest)
        number("length_penalty", self.length_penalty, -10.0, 10.0)
        _one_of("penalty_form", self.penalty_form, FORMS)
        _one_of("early_stopping", self.early_stopping, EARLY)
        object.__setattr__(self, "bad_words", _sequences(self.bad_words))
        self._check_draws()

    def _check_draws(self) -> None:
        _one_of("sample", self.sample, (True, False))
        if self.sample:
            if self.beams > 1:
                raise bad("beams", "1 where words are drawn", self.beams, "Ask for several texts by `count`.")
        elif (self.temperature, self.top_k, self.top_p) != (1.0, None, None):
            raise bad("temperature, top_k and top_p", "given with sample=True", False)
        elif self.count > self.beams:
            raise bad("count", f"at most the number of beams, {self.beams}", self.count)
        number("temperature", self.temperature, 1e-6, 1e6)
        if self.top_k is not None:
            whole("top_k", self.top_k, 1)
        if self.top_p is not None:
            number("top_p", self.top_p, 1e-9, 1.0)

    def but(self, **changes: Any) -> "Writing":
        """The same options with some changed."""
        names = [field.name for field in fields(self)]
        for name in changes:
            if name not in names:
                raise no_option(name, names)
        return replace(self, **changes)

    def fitting(self, *, positions: int, vocab: int) -> "Writing":
        """The same options with `longest` filled in, if a model of that size can do it."""
        for name in ("longest", "shortest"):
            if (getattr(self, name) or 0) > positions:
                most = f"at most {positions}, as many as there are positions"
                raise bad(name, most, getattr(self, name))
        named = {name: (getattr(self, name),) for name in ("first_id", "last_id")}
        for name, tokens in {**named, "bad_words": [t for word in self.bad_words for t in word]}.items():
            for token in tokens:
                if token is not None and token >= vocab:
                    raise bad(name, f"below {vocab}, the number of words", token)
        return replace(self, longest=positions if self.longest is None else self.longest)

    def penalty(self, length: int) -> float:
        """What the score of a text is divided by."""
        base = length if self.penalty_form == "hf" else (5 + length) / 6
        return float(base**self.length_penalty)


def _one_of(name: str, value: Any, known: tuple[Any, ...]) -> None:
    if not any(value is one or (isinstance(value, str) and value == one) for one in known):
        raise bad(name, f"one of {', '.join(map(repr, known))}", value)


def _sequences(words: Any) -> tuple[tuple[int, ...], ...]:
    if isinstance(words, Iterable) and all(isinstance(word, Iterable) and word for word in words):
        return tuple(tuple(whole("bad_words", token, 0) for token in word) for word in words)
    raise bad("bad_words", "sequences of sequences of token numbers", words)
