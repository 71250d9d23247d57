"""The measures that papers report, on plain Python values."""

import re
import string
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np

from longspan.shapes import FloatArray


def accuracy(predicted: Sequence[Hashable], expected: Sequence[Hashable]) -> dict[str, float]:
    """The share of predictions that are right.

    >>> accuracy(["a", "b"], ["a", "c"])
    {'accuracy': 0.5}
    """
    right = sum(one == other for one, other in zip(predicted, expected, strict=True))
    return {"accuracy": right / max(len(expected), 1)}


def set_f1(predicted: Iterable[set[Hashable]], expected: Iterable[set[Hashable]]) -> dict[str, float]:
    """Micro-averaged precision, recall and F1 of sets, such as the entities (start, end, label) of each text.

    >>> set_f1([{1, 2}], [{2, 3}])["f1"]
    0.5
    """
    pairs = list(zip(predicted, expected, strict=True))
    hits = sum(len(p & e) for p, e in pairs)
    said, true = sum(len(p) for p, _ in pairs), sum(len(e) for _, e in pairs)
    precision, recall = hits / max(said, 1), hits / max(true, 1)
    return {"precision": precision, "recall": recall, "f1": 2 * hits / max(said + true, 1)}


def squad(predicted: Sequence[str], expected: Sequence[Sequence[str]]) -> dict[str, float]:
    """Exact match and F1 of words, against the best of the right answers (Rajpurkar et al. 2016).

    >>> squad(["the Thames"], [["Thames", "river Thames"]])
    {'exact_match': 1.0, 'f1': 1.0}
    """
    exact, overlap = [], []
    for answer, right in zip(predicted, expected, strict=True):
        words, others = _words(answer), [_words(text) for text in right or [""]]
        exact.append(max(words == other for other in others))
        overlap.append(max(_f1(words, other) for other in others))
    return {"exact_match": float(np.mean(exact)), "f1": float(np.mean(overlap))}


def spearman(predicted: Sequence[float], expected: Sequence[float]) -> dict[str, float]:
    """The rank correlation of similarities, by which sentence embeddings are judged.

    >>> round(spearman([0.1, 0.5, 0.9], [1, 2, 3])["spearman"], 6)
    1.0
    """
    ranks = [_ranks(np.asarray(values, np.float64)) for values in (predicted, expected)]
    return {"spearman": float(np.corrcoef(ranks[0], ranks[1])[0, 1])}


def rouge(predicted: Sequence[str], expected: Sequence[str]) -> dict[str, float]:
    """Mean F1 of ROUGE-1, ROUGE-2 and ROUGE-L, of lower-case words without stemming (Lin 2004).

    >>> {name: round(100 * value) for name, value in rouge(["the cat sat"], ["The cat sat down."]).items()}
    {'rouge1': 86, 'rouge2': 80, 'rougeL': 86}
    """
    rows = [_rouge(one, other) for one, other in zip(predicted, expected, strict=True)]
    return dict(zip(("rouge1", "rouge2", "rougeL"), np.mean(rows, axis=0).tolist(), strict=True))


def _rouge(text: str, other: str) -> tuple[float, float, float]:
    ours, theirs = (re.findall(r"\w+", one.lower()) for one in (text, other))
    common = [_common(ours, theirs, 1), _common(ours, theirs, 2), _longest_common(ours, theirs)]
    sizes = [(len(ours), len(theirs)), (len(ours) - 1, len(theirs) - 1), (len(ours), len(theirs))]
    one, two, longest = (2 * n / max(1, a + b) for n, (a, b) in zip(common, sizes, strict=True))
    return one, two, longest


def _common(ours: Sequence[str], theirs: Sequence[str], n: int) -> int:
    a, b = (Counter(zip(*(text[i:] for i in range(n)), strict=False)) for text in (ours, theirs))
    return sum((a & b).values())


def _longest_common(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    row = [0] * (len(theirs) + 1)
    for word in ours:
        diagonal = 0
        for j, other in enumerate(theirs, 1):
            diagonal, row[j] = row[j], diagonal + 1 if word == other else max(row[j], row[j - 1])
    return row[-1]


def _words(text: str) -> list[str]:
    """As the SQuAD script has it: lower case, without punctuation and articles."""
    plain = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", plain).split()


def _f1(words: list[str], others: list[str]) -> float:
    if not words or not others:
        return float(words == others)
    hits = sum((Counter(words) & Counter(others)).values())
    return 2 * hits / (len(words) + len(others))


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks; equal values share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: FloatArray = ((ends - counts + ends - 1) / 2)[inverse]
    return ranks
