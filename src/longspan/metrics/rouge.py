"""ROUGE as Google's rouge-score defines it: n-grams, longest common subsequences, and those of sentences."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np

from longspan.errors import bad, one_of
from longspan.metrics.checks import pairs
from longspan.metrics.counts import ratio
from longspan.metrics.porter import stem

KINDS = ("rouge1", "rouge2", "rougeL", "rougeLsum")
Tokenize = Callable[[str], list[str]]


def words(text: str) -> list[str]:
    """Lower-case words of any alphabet.

    >>> words("A Café, open.")
    ['a', 'café', 'open']
    """
    return re.findall(r"\w+", text.lower())


def google_words(text: str) -> list[str]:
    """The words of rouge-score: runs of a to z and of digits, in lower case.

    >>> google_words("A Café, open.")
    ['a', 'caf', 'open']
    """
    return re.findall(r"[a-z0-9]+", text.lower())


def google_stems(text: str) -> list[str]:
    """The words of rouge-score with `use_stemmer=True`: Porter's stems of words of more than three letters.

    >>> google_stems("Long summaries are read.")
    ['long', 'summari', 'are', 'read']
    """
    return [stem(word) if len(word) > 3 else word for word in google_words(text)]


def rouge(
    predicted: Sequence[str],
    expected: Sequence[str] | Sequence[Sequence[str]],
    kinds: Sequence[str] = ("rouge1", "rouge2", "rougeL"),
    tokenize: Tokenize = words,
) -> dict[str, float]:
    """Mean F1 of each kind (Lin 2004); of several right summaries the best counts, for each kind by itself.

    For rougeLsum every line is a sentence. Papers mostly report `tokenize=google_stems`.

    >>> {name: round(100 * value) for name, value in rouge(["the cat sat"], ["The cat sat down."]).items()}
    {'rouge1': 86, 'rouge2': 80, 'rougeL': 86}
    """
    measures = {one_of("kinds", kind, KINDS): _MEASURES[kind] for kind in kinds}
    rows = []
    for i, (text, right) in enumerate(pairs(predicted, expected)):
        others = [right] if isinstance(right, str) else list(right)
        if not others:
            raise bad(f"expected[{i}]", "a summary, or a list of at least one", right)
        ours, theirs = _lines(text, tokenize), [_lines(other, tokenize) for other in others]
        rows.append([max(measure(ours, other) for other in theirs) for measure in measures.values()])
    return dict(zip(measures, np.mean(rows, axis=0).tolist(), strict=True))


def _lines(text: str, tokenize: Tokenize) -> list[list[str]]:
    return [tokenize(line) for line in text.split("\n")]


def _n_grams(ours: list[list[str]], theirs: list[list[str]], n: int) -> float:
    texts = ([*chain(*lines)] for lines in (ours, theirs))
    a, b = (Counter(zip(*(text[i:] for i in range(n)), strict=False)) for text in texts)
    return ratio(2 * (a & b).total(), a.total() + b.total())


def _subsequence(ours: list[list[str]], theirs: list[list[str]]) -> float:
    a, b = [*chain(*ours)], [*chain(*theirs)]
    return ratio(2 * len(_common(b, a)), len(a) + len(b))


def _sentences(ours: list[list[str]], theirs: list[list[str]]) -> float:
    """Words of right sentences that ours have in their order; none counts twice (Lin 2004, section 3.2)."""
    a, b = Counter(chain(*ours)), Counter(chain(*theirs))
    union = Counter[str]()
    for right in theirs:
        union.update(right[i] for i in set[int]().union(*(_common(right, one) for one in ours)))
    return ratio(2 * (union & a & b).total(), a.total() + b.total())


def _common(right: Sequence[str], ours: Sequence[str]) -> list[int]:
    """Where the longest common subsequence stands in `right`: of several, the one that rouge-score takes."""
    table = [[0] * (len(ours) + 1)]
    for word in right:
        above, row = table[-1], [0]
        for j, other in enumerate(ours):
            row.append(above[j] + 1 if word == other else max(above[j + 1], row[j]))
        table.append(row)
    i, j, found = len(right), len(ours), []
    while i and j:
        if right[i - 1] == ours[j - 1]:
            i, j = i - 1, j - 1
            found.append(i)
        elif table[i][j - 1] > table[i - 1][j]:
            j -= 1
        else:
            i -= 1
    return found


_MEASURES: dict[str, Callable[[list[list[str]], list[list[str]]], float]] = {
    "rouge1": lambda ours, theirs: _n_grams(ours, theirs, 1),
    "rouge2": lambda ours, theirs: _n_grams(ours, theirs, 2),
    "rougeL": _subsequence,
    "rougeLsum": _sentences,
}
