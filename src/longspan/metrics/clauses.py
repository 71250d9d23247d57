"""Clauses of contracts: CUAD's precision and recall of stretches of text (Hendrycks et al. 2021)."""

from collections.abc import Mapping, Sequence

import numpy as np

from longspan.errors import bad, number
from longspan.metrics.checks import pairs
from longspan.shapes import FloatArray

SIMILAR = 0.5
"""The Jaccard index of two sets of words from which they count as the same clause."""
THRESHOLDS = np.array([*np.arange(0.99, 0, -0.01), 0.001, 0])
"""The script's own floats, because a probability must be above one of them."""
_DROPPED = str.maketrans({**dict.fromkeys(".,;:", ""), "/": " "})


def cuad(
    predicted: Sequence[Mapping[str, float]],
    expected: Sequence[Sequence[str]],
    parties: Sequence[bool] | None = None,
) -> dict[str, float]:
    """The area under the curve of precision and recall, and the precision at 80 % and 90 % recall.

    A prediction holds candidate texts for a question with probabilities, `expected` its clauses, if any.
    `parties` marks questions about parties, where a candidate that holds a whole clause is right, too.

    >>> found = cuad([{"the laws of Delaware": 0.9}, {"thirty days": 0.2}], [["laws of Delaware"], []])
    >>> {name: round(value, 2) for name, value in found.items()}
    {'aupr': 1.0, 'precision_at_80_recall': 1.0, 'precision_at_90_recall': 1.0}
    """
    cases = pairs(predicted, expected)
    about = [False] * len(cases) if parties is None else parties
    if len(about) != len(cases):
        raise bad("parties", f"{len(cases)} flags, one for each question", len(about))
    found: list[float] = []
    false: list[float] = []
    for i, ((candidates, clauses), whole) in enumerate(zip(cases, about, strict=True)):
        sure = {text: number(f"predicted[{i}][{text!r}]", p, 0, 1) for text, p in candidates.items() if text}
        if isinstance(clauses, str) or not all(clauses):
            raise bad(f"expected[{i}]", "a list of texts that are not empty", clauses)
        hits = {text: [_same(clause, text, whole) for clause in clauses] for text in sure}
        # -1 is below every threshold: a clause that no candidate is.
        found += [
            max((sure[text] for text in hits if hits[text][j]), default=-1) for j in range(len(clauses))
        ]
        false += [sure[text] for text in hits if not any(hits[text])]
    if not found:
        raise bad("expected", "at least one clause in all", 0, "Recall needs some that can be found.")
    return _curve(np.array(found), np.array(false))


def _curve(found: FloatArray, false: FloatArray) -> dict[str, float]:
    """The figures for the best probability of each clause, and those of the candidates that are none."""
    hits = np.array([(found > threshold).sum() for threshold in THRESHOLDS])
    said = hits + [(false > threshold).sum() for threshold in THRESHOLDS]
    recalls = np.concatenate([[0.0], hits / len(found)])
    precisions = np.concatenate([[1.0], hits / np.maximum(said, 1)])
    # The best precision at this recall or more. Where nothing was said, there is none, and 0 changes nothing.
    envelope = np.maximum.accumulate(precisions[::-1])[::-1]
    # The script looks for a recall at all points but the last, where everything counts.
    at = {share: np.flatnonzero(recalls[:-1] >= share / 100)[:1] for share in (80, 90)}
    return {
        "aupr": float((np.diff(recalls) * (envelope[1:] + envelope[:-1])).sum() / 2),
        **{f"precision_at_{share}_recall": float(envelope[place].sum()) for share, place in at.items()},
    }


def _same(clause: str, text: str, whole: bool) -> bool:
    # Cut at single spaces, as the published script does: at a line break it cuts nothing, and "" is a word.
    ours, theirs = (set(one.translate(_DROPPED).lower().split(" ")) for one in (clause, text))
    similar = len(ours & theirs) >= SIMILAR * len(ours | theirs)
    return similar or (whole and clause in text)
