"""ROUGE F1 of two texts (Lin 2004): words and pairs of words in common, and the longest common sequence."""

import re
from collections import Counter
from collections.abc import Sequence


def rouge(found: str, wanted: str) -> tuple[float, float, float]:
    """ROUGE-1, ROUGE-2 and ROUGE-L, of lower-case words without stemming.

    >>> [round(100 * part) for part in rouge("the cat sat", "The cat sat down.")]
    [86, 80, 86]
    """
    ours, theirs = (re.findall(r"\w+", text.lower()) for text in (found, wanted))
    common = [_common(ours, theirs, 1), _common(ours, theirs, 2), _ordered(ours, theirs)]
    sizes = [(len(ours), len(theirs)), (len(ours) - 1, len(theirs) - 1), (len(ours), len(theirs))]
    one, two, order = (2 * n / max(1, a + b) for n, (a, b) in zip(common, sizes, strict=True))
    return one, two, order


def _common(ours: Sequence[str], theirs: Sequence[str], n: int) -> int:
    """Runs of n words that stand in both, each as often as in the text that has it less often."""
    a, b = (Counter(zip(*(text[i:] for i in range(n)), strict=False)) for text in (ours, theirs))
    return sum((a & b).values())


def _ordered(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """The length of the longest sequence of words that stands in both, with gaps."""
    row = [0] * (len(theirs) + 1)
    for word in ours:
        last = 0  # what stood diagonally before
        for j, other in enumerate(theirs, 1):
            last, row[j] = row[j], last + 1 if word == other else max(row[j], row[j - 1])
    return row[-1]
