"""Logits processors: what may come next whatever its score, and what may be sampled."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from longspan.generation.config import GenerationConfig
from longspan.shapes import IntArray

NEVER = -torch.inf


def process_logits(scores: Tensor, written: IntArray, config: GenerationConfig, *, eos: int) -> Tensor:
    """Scores (R, vocab) of the words after the texts `written` (R, 1 + n), -inf for those that are forbidden.

    `written` begins with the start token, which counts like any other. The order is that of transformers: a
    forced word is forced whatever else is forbidden.
    """
    length = written.shape[1] - 1
    if config.no_repeat_ngram_size:
        _forbid(scores, _repeats(written, config.no_repeat_ngram_size))
    if config.bad_words_ids:
        words = [word for word in config.bad_words_ids if word != (eos,)]
        _forbid(scores, [_completions(text, words) for text in written.tolist()])
    if length < config.min_new_tokens:
        scores[:, eos] = NEVER
    if length == 0 and config.forced_bos_token_id is not None:
        _only(scores, config.forced_bos_token_id)
    if length + 1 == config.max_new_tokens and config.forced_eos_token_id is not None:
        _only(scores, config.forced_eos_token_id)
    return scores


def warp_logits(scores: Tensor, config: GenerationConfig) -> Tensor:
    """Scores (R, vocab) as words are sampled by: by temperature, and -inf for the less likely ones."""
    scores = scores / config.temperature
    if config.top_k is not None:
        least = scores.topk(min(config.top_k, scores.shape[1])).values[:, -1:]
        scores = scores.masked_fill(scores < least, NEVER)
    if config.top_p is not None and config.top_p < 1:
        ordered, place = scores.sort()
        unlikely = ordered.softmax(-1).cumsum(-1) <= 1 - config.top_p
        unlikely[:, -1] = False  # the likeliest stays
        scores = scores.masked_fill(unlikely.scatter(1, place, unlikely), NEVER)
    return scores


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


def _only(scores: Tensor, word: int) -> None:
    scores.fill_(NEVER)
    scores[:, word] = 0
