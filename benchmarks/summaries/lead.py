"""The lead baseline: n-grams of the training summaries, and n-grams copied from the document's lead."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from benchmarks.summaries.papers import START, Pair
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Counts:
    """How often each word stands behind each context of 0 to `order` - 1 words."""

    def __init__(self, texts: Sequence[Sequence[int]], order: int) -> None:
        self.order = order
        self.behind: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        for text in texts:
            for i in range(1, len(text)):
                for n in range(min(order, i + 1)):
                    self.behind[tuple(text[i - n : i])][text[i]] += 1
        self.total = {context: sum(found.values()) for context, found in self.behind.items()}

    def shares(self, before: Sequence[int], word: int) -> tuple[list[float], int]:
        """The word's share behind each ending of `before`, shortest first, and how many endings were seen."""
        shares, known = [0.0] * self.order, 0
        for n in range(min(self.order, len(before) + 1)):
            context = tuple(before[len(before) - n :])
            if context in self.total:
                shares[n], known = self.behind[context][word] / self.total[context], n + 1
        return shares, known


class Lead:
    """A mixture of n-grams of the training summaries (up to 3) and n-grams of the lead (up to `copied`).

    The weights depend on how long the contexts are that both know, and are those that make the summaries of
    `tuning` likeliest (EM).
    """

    def __init__(
        self, train: Sequence[Pair], tuning: Sequence[Pair], *, vocabulary: int, lead: int, copied: int
    ) -> None:
        self.vocabulary, self.lead, self.copied = vocabulary, lead, copied
        self.counts = Counts([[START, *one.summary] for one in train], 3)
        shares, cases = self._parts(tuning)
        self.weights = np.full((4 * (copied + 1), shares.shape[1]), 1 / shares.shape[1])
        for _ in range(60):
            told = shares * self.weights[cases]
            told /= told.sum(1, keepdims=True)
            sums = np.full_like(self.weights, 1e-3)
            np.add.at(sums, cases, told)
            self.weights = sums / sums.sum(1, keepdims=True)

    def losses(self, pairs: Sequence[Pair]) -> list[float]:
        """Minus the logarithm of the probability of each pair's summary, all of its tokens together."""
        shares, cases = self._parts(pairs)
        each = -np.log((shares * self.weights[cases]).sum(1))
        ends = np.cumsum([len(one.summary) for one in pairs])[:-1]
        return [float(part.sum()) for part in np.split(each, ends)]

    def _parts(self, pairs: Sequence[Pair]) -> tuple[Floats, NDArray[np.int64]]:
        """What each part of the mixture says of each word, and which weights apply."""
        rows, cases = [], []
        for document, summary in pairs:
            cache, text = Counts([document[: self.lead]], self.copied), [START, *summary]
            for i in range(1, len(text)):
                (learnt, known), (copied, seen) = (
                    counts.shares(text[max(0, i - counts.order + 1) : i], text[i])
                    for counts in (self.counts, cache)
                )
                rows.append([1 / self.vocabulary, *learnt, *copied])
                cases.append(known * (self.copied + 1) + seen)
        return np.array(rows), np.array(cases)
