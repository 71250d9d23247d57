"""One document's texts while they are generated: by beam search, greedily or by sampling."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.errors import bad
from longspan.generation.config import GenerationConfig
from longspan.generation.logits_process import NEVER
from longspan.shapes import BoolArray, IntArray


class Hypothesis(NamedTuple):
    """A generated text."""

    tokens: tuple[int, ...]
    "Without the start token, with the last one generated."
    score: float
    "The sum of its log-probabilities, for beams divided by the length penalty."


class BeamSearch:
    """Beam search as Hugging Face has it: of each step's candidates the best go on or are kept as finished.

    Where words are sampled, so are the candidates, by `generator` and without replacement.

    `tokens` (R, 1 + n) are the texts being written, `rows` (R, n) where their rows of the decoder are kept.

    A candidate that the rules forbid is none, and no text stands twice among the beams: where fewer are left
    than beams, fewer go on. Transformers fills up with copies and forbidden texts of score -1e9, which differ
    from ours where there are fewer words than twice the beams.
    """

    def __init__(
        self,
        config: GenerationConfig,
        start: int,
        eos: Sequence[int],
        generator: torch.Generator | None = None,
    ) -> None:
        self.config, self.eos, self.generator = config, list(eos), generator
        self.tokens = np.full((1, 1), start, np.int64)
        self.rows = np.zeros((1, 0), np.int64)
        self.scores = torch.zeros(1)
        self.finished: list[Hypothesis] = []

    def advance(self, logits: Tensor, rows: IntArray) -> bool:
        """Take the next words by ruled log-probabilities (R, vocab); whether anything is left to write.

        `rows` (R,) are the decoder's rows of this step.
        """
        config, beams = self.config, self.config.num_beams
        best, parent, word = self._candidates(logits, max(2, 1 + len(self.eos)) * beams)
        if not len(best):
            return False
        tokens = np.concatenate([self.tokens[parent], word[:, None]], axis=1)
        length = tokens.shape[1] - 1
        ends = np.isin(word, self.eos) | (length == config.max_new_tokens)
        new = [_hypothesis(tokens[i], best[i] / config.penalty(length)) for i in np.flatnonzero(ends[:beams])]
        self.finished = sorted([*self.finished, *new], key=lambda text: -text.score)[:beams]
        live = np.flatnonzero(~ends)
        live = live[np.argsort(-best.numpy()[live], kind="stable")][:beams]  # samples come in any order
        kept = np.concatenate([self.rows, rows[:, None]], axis=1)
        self.tokens, self.rows, self.scores = tokens[live], kept[parent[live]], best[torch.from_numpy(live)]
        return bool(live.size) and self._may_improve(length)

    def _candidates(self, logits: Tensor, count: int) -> tuple[Tensor, IntArray, IntArray]:
        """At most `count` texts to go on with: their scores, which text each continues, and by which word."""
        each, words = logits, None
        if not self.config.do_sample:
            each, words = logits.topk(min(count, logits.shape[1]))  # (R, vocab) -> (R, k)
        totals = (each + self.scores[:, None]).flatten()
        if self.config.do_sample:
            best, place = self._drawn(totals, count, logits.shape[1])
        else:
            best, place = totals.topk(min(count, len(totals)))
            _check(best[0])
        best, place = best[best > NEVER], place[best > NEVER]
        word = place % each.shape[1] if words is None else words.flatten()[place]
        return best, (place // each.shape[1]).numpy(), word.numpy()

    def _drawn(self, totals: Tensor, count: int, vocab: int) -> tuple[Tensor, Tensor]:
        """The scores and places of `count` different candidates, drawn by their scores (R * vocab,)."""
        highest = totals.amax()
        _check(highest)
        if highest == NEVER:
            return totals[:0], torch.zeros(0, dtype=torch.long)
        # as many numbers are drawn as for all beams, so that the next step's draws are transformers'
        totals = F.pad(totals, (0, self.config.num_beams * vocab - len(totals)), value=NEVER)
        place = torch.multinomial(totals.softmax(-1), min(count, len(totals)), generator=self.generator)
        return totals[place], place

    def _may_improve(self, length: int) -> bool:
        config = self.config
        if len(self.finished) < config.num_beams:
            return True
        if config.early_stopping is True:
            return False
        hoped = config.early_stopping == "never" and config.length_penalty > 0
        assert config.max_new_tokens is not None
        best = float(self.scores[0] / config.penalty(config.max_new_tokens if hoped else length))
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

    def results(self) -> list[Hypothesis]:
        """The finished texts, best first, and behind them what was still being written: `count` of them."""
        penalty = self.config.penalty(max(1, self.tokens.shape[1] - 1))
        rest = map(_hypothesis, self.tokens, self.scores / penalty)
        return [*self.finished, *rest][: self.config.num_return_sequences]


class Sampler:
    """Texts that each take the likeliest word, or draw one; a text that is finished costs nothing more."""

    def __init__(
        self,
        config: GenerationConfig,
        start: int,
        eos: Sequence[int],
        generator: torch.Generator | None = None,
    ) -> None:
        self.config, self.eos, self.generator = config, list(eos), generator
        count = config.num_return_sequences if config.do_sample else 1
        self.tokens = np.full((count, 1), start, np.int64)
        self.rows = np.zeros((count, 0), np.int64)
        self.scores = torch.zeros(count)
        self._numbers = np.arange(count)
        self._done: dict[int, Hypothesis] = {}

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
        if self.config.do_sample:
            words = torch.multinomial(logits.softmax(-1), 1, generator=self.generator)
        self.scores = self.scores + logits.log_softmax(-1).gather(1, words)[:, 0]
        self.tokens = np.concatenate([self.tokens, words.numpy()], axis=1)
        ended = np.isin(self.tokens[:, -1], self.eos)
        return self._keep(~ended & (self.tokens.shape[1] - 1 != self.config.max_new_tokens))

    def _keep(self, going: BoolArray) -> bool:
        """Go on with some of the texts, the others are done; whether there are any."""
        for i in np.flatnonzero(~going):
            self._done[int(self._numbers[i])] = _hypothesis(self.tokens[i], self.scores[i])
        self.tokens, self.rows, self._numbers = self.tokens[going], self.rows[going], self._numbers[going]
        self.scores = self.scores[torch.from_numpy(going)]
        return bool(going.any())

    def certain(self) -> IntArray:
        """The tokens of the first text."""
        return self.tokens[0, 1:]

    def results(self) -> list[Hypothesis]:
        """The texts in the order they were begun."""
        rest = zip(self._numbers.tolist(), map(_hypothesis, self.tokens, self.scores), strict=True)
        return [text for _, text in sorted([*self._done.items(), *rest])]


def _hypothesis(tokens: IntArray, score: Tensor) -> Hypothesis:
    return Hypothesis(tuple(tokens[1:].tolist()), float(score))


def _check(best: Tensor) -> None:
    """The largest scores; the largest of some that hold NaN is NaN."""
    if not bool((best < torch.inf).all()):
        repair = "The weights hold NaN or infinity, or are too large for their type: load them as float32."
        raise bad("scores", "numbers", float(best.max()), repair)
