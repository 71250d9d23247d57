"""One document's texts while they are written: beams that compete, or texts that each go their own way."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from longspan.errors import bad
from longspan.generation.options import Writing
from longspan.generation.rules import NEVER, narrowed
from longspan.shapes import BoolArray, IntArray


class Text(NamedTuple):
    """A text that was written."""

    tokens: tuple[int, ...]
    "Without the first token given, with the last one written."
    score: float
    "The sum of its words' logarithms, for beams divided by the penalty of its length."


class Beams:
    """Beam search as Hugging Face has it: of each step's candidates the best go on or are kept as finished.

    `tokens` (R, 1 + n) are the texts being written, `rows` (R, n) where their rows of the decoder are kept.

    A candidate that the rules forbid is none, and no text stands twice among the beams: where fewer are left
    than beams, fewer go on. Transformers fills up with copies and forbidden texts of score -1e9, which differ
    from ours where there are fewer words than twice the beams.
    """

    def __init__(self, options: Writing, start: int, eos: int) -> None:
        self.options, self.eos = options, eos
        self.tokens = np.full((1, 1), start, np.int64)
        self.rows = np.zeros((1, 0), np.int64)
        self.scores = torch.zeros(1)
        self.finished: list[Text] = []

    def advance(self, logits: Tensor, rows: IntArray) -> bool:
        """Take the next words by ruled log-probabilities (R, vocab); whether anything is left to write.

        `rows` (R,) are the decoder's rows of this step.
        """
        options, beams = self.options, self.options.beams
        each, words = logits.topk(min(2 * beams, logits.shape[1]))  # (R, vocab) -> (R, k)
        totals = (each + self.scores[:, None]).flatten()
        best, place = totals.topk(min(2 * beams, len(totals)))
        _check(best[0])
        allowed = int((best > NEVER).sum())
        if not allowed:
            return False
        best, place = best[:allowed], place[:allowed]
        parent, word = (place // each.shape[1]).numpy(), words.flatten()[place].numpy()
        tokens = np.concatenate([self.tokens[parent], word[:, None]], axis=1)
        length = tokens.shape[1] - 1
        ends = (word == self.eos) | (length == options.longest)
        new = [_text(tokens[i], best[i] / options.penalty(length)) for i in np.flatnonzero(ends[:beams])]
        self.finished = sorted([*self.finished, *new], key=lambda text: -text.score)[:beams]
        live = np.flatnonzero(~ends)[:beams]
        kept = np.concatenate([self.rows, rows[:, None]], axis=1)
        self.tokens, self.rows, self.scores = tokens[live], kept[parent[live]], best[torch.from_numpy(live)]
        return bool(live.size) and self._may_improve(length)

    def _may_improve(self, length: int) -> bool:
        options = self.options
        if len(self.finished) < options.beams:
            return True
        if options.early_stopping is True:
            return False
        hoped = options.early_stopping == "never" and options.length_penalty > 0
        assert options.longest is not None
        best = float(self.scores[0] / options.penalty(options.longest if hoped else length))
        return best > self.finished[-1].score

    def certain(self) -> IntArray:
        """The tokens that the best text will begin with, however it ends.

        It is the best of the finished ones, or one that goes on from those being written: what they agree on
        stands in all of them.
        """
        texts = self.tokens[:, 1:]
        if self.finished:
            best = np.asarray(self.finished[0].tokens, np.int64)
            size = min(best.size, texts.shape[1])
            texts = np.concatenate([texts[:, :size], best[None, :size]])
        agree = (texts == texts[:1]).all(axis=0)
        return texts[0, : agree.size if agree.all() else int(agree.argmin())]

    def results(self) -> list[Text]:
        """The finished texts, best first, and behind them what was still being written: `count` of them."""
        penalty = self.options.penalty(max(1, self.tokens.shape[1] - 1))
        rest = map(_text, self.tokens, self.scores / penalty)
        return [*self.finished, *rest][: self.options.count]


class Draws:
    """Texts that each take the likeliest word, or draw one; a text that is finished costs nothing more."""

    def __init__(
        self, options: Writing, start: int, eos: int, generator: torch.Generator | None = None
    ) -> None:
        self.options, self.eos, self.generator = options, eos, generator
        count = options.count if options.sample else 1
        self.tokens = np.full((count, 1), start, np.int64)
        self.rows = np.zeros((count, 0), np.int64)
        self.scores = torch.zeros(count)
        self._numbers = np.arange(count)
        self._done: dict[int, Text] = {}

    def advance(self, logits: Tensor, rows: IntArray) -> bool:
        """Take the next words by ruled scores (R, vocab); whether anything is left to write."""
        self.rows = np.concatenate([self.rows, rows[:, None]], axis=1)
        best, words = logits.max(1, keepdim=True)
        _check(best)
        allowed = best[:, 0] > NEVER
        if not allowed.all():  # a text behind which no word may stand ends as it is
            logits, words = logits[allowed], words[allowed]
            if not self._keep(allowed.numpy()):
                return False
        if self.options.sample:
            logits = narrowed(logits, self.options)
            words = torch.multinomial(logits.softmax(-1), 1, generator=self.generator)
        self.scores = self.scores + logits.log_softmax(-1).gather(1, words)[:, 0]
        self.tokens = np.concatenate([self.tokens, words.numpy()], axis=1)
        ended = (self.tokens[:, -1] == self.eos) | (self.tokens.shape[1] - 1 == self.options.longest)
        return self._keep(~ended)

    def _keep(self, going: BoolArray) -> bool:
        """Go on with some of the texts, the others are done; whether there are any."""
        for i in np.flatnonzero(~going):
            self._done[int(self._numbers[i])] = _text(self.tokens[i], self.scores[i])
        self.tokens, self.rows, self._numbers = self.tokens[going], self.rows[going], self._numbers[going]
        self.scores = self.scores[torch.from_numpy(going)]
        return bool(going.any())

    def certain(self) -> IntArray:
        """The tokens of the first text."""
        return self.tokens[0, 1:]

    def results(self) -> list[Text]:
        """The texts in the order they were begun."""
        rest = zip(self._numbers.tolist(), map(_text, self.tokens, self.scores), strict=True)
        return [text for _, text in sorted([*self._done.items(), *rest])]


def _text(tokens: IntArray, score: Tensor) -> Text:
    return Text(tuple(tokens[1:].tolist()), float(score))


def _check(best: Tensor) -> None:
    """The largest scores; the largest of some that hold NaN is NaN."""
    if not bool((best < torch.inf).all()):
        repair = "The weights hold NaN or infinity, or are too large for their type: load them as float32."
        raise bad("scores", "numbers", float(best.max()), repair)
