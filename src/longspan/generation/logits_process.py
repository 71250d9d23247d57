"""Logits processors: what may come next whatever its score, and what may be sampled."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from longspan.generation.config import GenerationConfig, tokens_of
from longspan.shapes import IntArray

NEVER = -torch.inf


class LogitsProcessor:
    """The rules by which texts about one document are written, in transformers' order.

    `eos` are the tokens that end a text, `document` (n,) the tokens that were read. Unlike there,
    `encoder_repetition_penalty` holds for every beam, not for the first alone, and an end that is forbidden
    stays so under `exponential_decay_length_penalty`, where theirs becomes NaN and is taken.
    """

    def __init__(
        self, config: GenerationConfig, eos: Sequence[int], document: IntArray | None = None
    ) -> None:
        self.config, self.eos = config, list(eos)
        self._document = np.zeros(0, np.int64) if document is None else document
        self._bad_words = [word for word in config.bad_words_ids if word not in [(end,) for end in self.eos]]

    def __call__(self, scores: Tensor, written: IntArray) -> Tensor:
        """Scores (R, vocab) of the words after the texts `written` (R, 1 + n), -inf for what is forbidden.

        `written` begins with the start token, which counts like any other. A forced word is forced whatever
        came before it in the order.
        """
        scores = self._forbidden(self._penalized(scores, written), written)
        scores = self._suppressed(self._forced(scores, written.shape[1] - 1), written.shape[1] - 1)
        if self.config.do_sample:
            scores = warp_logits(scores, self.config, least=1 + len(self.eos) * (self.config.num_beams > 1))
        return _normalized(scores) if self.config.renormalize_logits else scores

    def _penalized(self, scores: Tensor, written: IntArray) -> Tensor:
        config = self.config
        if config.encoder_repetition_penalty != 1:
            read = torch.from_numpy(self._words).expand(len(scores), -1)
            scores = _penalized(scores, read, 1 / config.encoder_repetition_penalty)
        if config.repetition_penalty != 1:
            scores = _penalized(scores, torch.from_numpy(written), config.repetition_penalty)
        return scores

    def _forbidden(self, scores: Tensor, written: IntArray) -> Tensor:
        config = self.config
        if config.no_repeat_ngram_size:
            _forbid(scores, _repeats(written, config.no_repeat_ngram_size))
        if config.encoder_no_repeat_ngram_size:
            size = config.encoder_no_repeat_ngram_size
            last = written[:, max(0, written.shape[1] + 1 - size) :].tolist()
            _forbid(scores, [self._continuations.get(tuple(words), []) for words in last])
        if self._bad_words:
            _forbid(scores, [_completions(text, self._bad_words) for text in written.tolist()])
        if written.shape[1] - 1 < config.min_new_tokens:
            scores[:, self.eos] = NEVER
        return scores

    def _forced(self, scores: Tensor, length: int) -> Tensor:
        config = self.config
        if length == 0 and config.forced_bos_token_id is not None:
            scores = _only(scores, [config.forced_bos_token_id])
        if length + 1 == config.max_new_tokens and config.forced_eos_token_id is not None:
            scores = _only(scores, tokens_of(config.forced_eos_token_id))
        return scores

    def _suppressed(self, scores: Tensor, length: int) -> Tensor:
        config = self.config
        if config.exponential_decay_length_penalty is not None:
            start, factor = config.exponential_decay_length_penalty
            if length > start:
                ends = scores[:, self.eos]
                likelier = ends + ends.abs() * (pow(factor, length - start) - 1)
                scores[:, self.eos] = torch.where(ends > NEVER, likelier, ends)  # what is forbidden stays so
        if config.suppress_tokens:
            scores[:, list(config.suppress_tokens)] = NEVER
        if config.begin_suppress_tokens and length == int(config.forced_bos_token_id is not None):
            scores[:, list(config.begin_suppress_tokens)] = NEVER
        return scores

    @cached_property
    def _words(self) -> IntArray:
        return np.unique(self._document)

    @cached_property
    def _continuations(self) -> dict[tuple[int, ...], list[int]]:
        """The last words of the document's n-grams, by the words before them."""
        found, tokens = defaultdict(list), self._document.tolist()
        size = self.config.encoder_no_repeat_ngram_size
        for ngram in zip(*(tokens[i:] for i in range(size)), strict=False):
            found[ngram[:-1]].append(ngram[-1])
        return dict(found)


def warp_logits(scores: Tensor, config: GenerationConfig, *, least: int = 1) -> Tensor:
    """Scores (R, vocab) as words are sampled by: by temperature, and -inf for all but the likely ones.

    At least `least` words stay.
    """
    scores = scores / config.temperature
    if config.top_k is not None:
        lowest = scores.topk(min(max(config.top_k, least), scores.shape[1])).values[:, -1:]
        scores = scores.masked_fill(scores < lowest, NEVER)
    if config.top_p is not None and config.top_p < 1:
        ordered, place = scores.sort()
        unlikely = ordered.softmax(-1).cumsum(-1) <= 1 - config.top_p
        unlikely[:, -least:] = False
        scores = scores.masked_fill(unlikely.scatter(1, place, unlikely), NEVER)
    if config.min_p is not None:
        shares = scores.softmax(-1)
        unlikely = shares < config.min_p * shares.amax(-1, keepdim=True)
        unlikely.scatter_(1, shares.topk(min(least, shares.shape[1])).indices, False)
        scores = scores.masked_fill(unlikely, NEVER)
    if config.typical_p is not None and config.typical_p < 1:
        scores = _typical(scores, config.typical_p, least)
    return scores


def _typical(scores: Tensor, mass: float, least: int) -> Tensor:
    """Only words whose information is nearest to the entropy, until they have this probability together."""
    logs = scores.log_softmax(-1)
    entropy = -(logs * logs.exp()).nansum(-1, keepdim=True)
    distance, place = (-logs - entropy).abs().sort()
    shares = scores.gather(1, place).softmax(-1).cumsum(-1)
    last = (shares < mass).sum(1, keepdim=True).clamp_(max=scores.shape[1] - 1)
    unlikely = distance > distance.gather(1, last)
    unlikely[:, :least] = False
    return scores.masked_fill(unlikely.scatter(1, place, unlikely), NEVER)


def _normalized(scores: Tensor) -> Tensor:
    """Log-probabilities; where nothing is allowed, nothing becomes so."""
    nothing = scores.amax(-1, keepdim=True) == NEVER
    return scores.log_softmax(-1).masked_fill(nothing, NEVER)


def _penalized(scores: Tensor, words: Tensor, penalty: float) -> Tensor:
    """Scores (R, vocab) with those of the `words` (R, n) made less likely (more, by a penalty below 1)."""
    own = scores.gather(1, words)
    return scores.scatter(1, words, torch.where(own < 0, own * penalty, own / penalty))


def _repeats(written: IntArray, size: int) -> list[IntArray]:
    """For each text the words that would repeat one of its n-grams of this size."""
    if written.shape[1] < size:
        return [written[0, :0]] * len(written)
    windows = np.lib.stride_tricks.sliding_window_view(written, size, axis=1)  # (R, n) -> (R, n - 1, size)
    prefix = written[:, written.shape[1] + 1 - size :]
    same = (windows[:, :, :-1] == prefix[:, None]).all(axis=2)
    return [row[at, -1] for row, at in zip(windows, same, strict=True)]


def _completions(text: list[int], sequences: Sequence[tuple[int, ...]]) -> list[int]:
    """The last words of those sequences whose other words end the text."""
    return [word[-1] for word in sequences if len(word) == 1 or text[1 - len(word) :] == list(word[:-1])]


def _forbid(scores: Tensor, words: "list[IntArray] | list[list[int]]") -> None:
    rows = np.repeat(np.arange(len(words)), [len(some) for some in words])
    places = torch.from_numpy(rows * scores.shape[1] + np.concatenate(words).astype(np.int64))
    scores.view(-1)[places] = NEVER


def _only(scores: Tensor, words: Sequence[int]) -> Tensor:
    only = torch.full_like(scores, NEVER)
    only[:, list(words)] = 0
    return only
