"""One document's texts while they are written: beams that compete, or texts that each go their own way."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from longspan.generation.options import Writing
from longspan.generation.rules import narrowed
from longspan.shapes import IntArray


class Text(NamedTuple):
    """A text that was written."""

    tokens: tuple[int, ...]
    "Without the first token given, with the last one written."
    score: float
    "The sum of its words' logarithms, for beams divided by the penalty of its length."


class Beams:
    """Beam search as Hugging Face has it: of each step's candidates the best go on or are kept as finished.

    `tokens` (R, 1 + n) are the texts being written, `rows` (R, n) where their rows of the decoder are kept.
    """

    def __init__(self, options: Writing, start: int, eos: int, longest: int) -> None:
        self.options, self.eos, self.longest = options, eos, longest
        self.tokens = np.full((1, 1), start, np.int64)
        self.rows = np.zeros((1, 0), np.int64)
        self.scores = torch.zeros(1)
        self.finished: list[Text] = []

    def advance(self, logits: Tensor, rows: IntArray) -> bool:
        """Take the next words by ruled log-probabilities (R, vocab); whether anything is left to write.

        `rows` (R,) are the decoder's rows of this step.
        """
        options, beams, vocab = self.options, self.options.beams, logits.shape[1]
        total = (logits + self.scores[:, None]).flatten()
        best, place = total.topk(min(2 * beams, total.numel()))
        parent, word = (part.numpy() for part in (place // vocab, place % vocab))
        tokens = np.concatenate([self.tokens[parent], word[:, None]], axis=1)
        length = tokens.shape[1] - 1
        ends = (word == self.eos) | (length >= self.longest)
        new = [
            Text(tuple(tokens[i, 1:].tolist()), float(best[i] / options.penalty(length)))
            for i in np.flatnonzero(ends[:beams])
        ]
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
        best = float(self.scores[0]) / options.penalty(self.longest if hoped else length)
        return best > self.finished[-1].score

    def results(self) -> list[Text]:
        """The texts, best first; what was still being written if it was stopped before any was finished."""
        rest = [
            Text(tuple(text[1:].tolist()), float(score) / self.options.penalty(max(1, len(text) - 1)))
            for text, score in zip(self.tokens, self.scores, strict=True)
        ]
        return (self.finished or rest)[: self.options.count]


class Draws:
    """Texts that each take the likeliest word, or draw one; a text that is finished costs nothing more."""

    def __init__(
        self, options: Writing, start: int, eos: int, longest: int, generator: torch.Generator | None = None
    ) -> None:
        self.options, self.eos, self.longest, self.generator = options, eos, longest, generator
        count = options.count if options.sample else 1
        self.tokens = np.full((count, 1), start, np.int64)
        self.rows = np.zeros((count, 0), np.int64)
        self.scores = torch.zeros(count)
        self.newest = start
        self._numbers = list(range(count))
        self._done: dict[int, Text] = {}

    def advance(self, logits: Tensor, rows: IntArray) -> bool:
        """Take the next words by ruled scores (R, vocab); whether anything is left to write."""
        if self.options.sample:
            logits = narrowed(logits, self.options)
            words = torch.multinomial(logits.softmax(-1), 1, generator=self.generator)
        else:
            words = logits.argmax(1, keepdim=True)
        self.scores = self.scores + logits.log_softmax(-1).gather(1, words)[:, 0]
        self.tokens = np.concatenate([self.tokens, words.numpy()], axis=1)
        self.rows = np.concatenate([self.rows, rows[:, None]], axis=1)
        self.newest = int(words[0])
        ends = (self.tokens[:, -1] == self.eos) | (self.tokens.shape[1] > self.longest)
        for i in np.flatnonzero(ends):
            self._done[self._numbers[i]] = self._text(int(i))
        live = np.flatnonzero(~ends)
        self._numbers = [self._numbers[i] for i in live]
        self.tokens, self.rows, self.scores = (
            self.tokens[live],
            self.rows[live],
            self.scores[torch.from_numpy(live)],
        )
        return bool(live.size)

    def _text(self, i: int) -> Text:
        return Text(tuple(self.tokens[i, 1:].tolist()), float(self.scores[i]))

    def results(self) -> list[Text]:
        """The texts in the order they were begun."""
        rest = {number: self._text(i) for i, number in enumerate(self._numbers)}
        return [text for _, text in sorted((self._done | rest).items())]
