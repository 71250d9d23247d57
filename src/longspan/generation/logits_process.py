"""What may be written next, whatever its score: rules on the scores of words."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from longspan.generation.options import Writing
from longspan.shapes import IntArray

NEVER = -torch.inf


def ruled(scores: Tensor, written: IntArray, options: Writing, *, eos: int) -> Tensor:
    """Scores (R, vocab) of the words behind the texts `written` (R, 1 + n), -inf for those ruled out.

    `written` begins with what the decoder is started by, which is a word like others to the rules. They are
    applied in transformers' order: a forced word is forced whatever else is forbidden.
    """
    length = written.shape[1] - 1
    if options.no_repeat:
        _forbid(scores, _repeats(written, options.no_repeat))
    if options.bad_words:
        words = [word for word in options.bad_words if word != (eos,)]
        _forbid(scores, [_completions(text, words) for text in written.tolist()])
    if length < options.shortest:
        scores[:, eos] = NEVER
    if length == 0 and options.first_id is not None:
        _only(scores, options.first_id)
    if length + 1 == options.longest and options.last_id is not None:
        _only(scores, options.last_id)
    return scores


def narrowed(scores: Tensor, options: Writing) -> Tensor:
    """Scores (R, vocab) as words are drawn by: sharpened, and -inf for the less likely ones."""
    scores = scores / options.temperature
    if options.top_k is not None:
        least = scores.topk(min(options.top_k, scores.shape[1])).values[:, -1:]
        scores = scores.masked_fill(scores < least, NEVER)
    if options.top_p is not None and options.top_p < 1:
        ordered, place = scores.sort()
        unlikely = ordered.softmax(-1).cumsum(-1) <= 1 - options.top_p
        unlikely[:, -1] = False  # the likeliest stays
        scores = scores.masked_fill(unlikely.scatter(1, place, unlikely), NEVER)
    return scores


def _repeats(written: IntArray, size: int) -> list[IntArray]:
    """For each text the words that would end a sequence of `size` tokens which stands in it."""
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
