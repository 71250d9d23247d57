"""Which passages are best: by an exact scan of vectors, by words, or by both ranks."""

import re
from collections.abc import Mapping

import numpy as np

from longspan.errors import bad, whole
from longspan.search.results import STOP
from longspan.shapes import FloatArray, IntArray

MODES = ("hybrid", "dense", "bm25")
SMOOTHING = 60
"""Of reciprocal rank fusion (Cormack et al., 2009)."""


def asked(query: object, top: object, mode: object) -> None:
    """Check what a search is asked for."""
    if not isinstance(query, str) or not query.strip():
        raise bad("query", "a text that is not empty", query)
    if mode not in MODES:
        raise bad("mode", f"one of {', '.join(MODES)}", mode)
    whole("top", top, 1)


def scan(vectors: FloatArray, query: FloatArray, slots: IntArray, count: int) -> tuple[IntArray, FloatArray]:
    """The `count` rows among `slots` whose product with the query is largest, largest first, and these.

    >>> table, query = np.eye(4, dtype=np.float32), np.arange(4, dtype=np.float32)
    >>> rows, scores = scan(table, query, np.array([0, 1, 3]), 2)
    >>> rows.tolist(), scores.tolist()
    ([3, 1], [3.0, 1.0])
    """
    import torch  # its product uses all threads, numpy's may not

    scores = torch.mv(torch.from_numpy(vectors), torch.from_numpy(query)).numpy()[slots]
    count = min(count, len(slots))
    best = np.argpartition(-scores, count - 1)[:count]
    best = best[np.lexsort((slots[best], -scores[best]))]
    return slots[best], scores[best]


def any_word(query: str) -> str:
    """The words of a query, for SQLite's full-text search; without those that stand everywhere.

    >>> any_word('who said "NEAR"?')
    '"said" OR "near"'
    """
    words = re.findall(r"[^\W_]+", query.casefold())
    words = [word for word in words if word not in STOP] or words
    return " OR ".join(f'"{word}"' for word in dict.fromkeys(words))


def fused(*rankings: Mapping[int, float]) -> dict[int, float]:
    """The sum of 1 / (60 + rank) over rankings, best first.

    >>> list(fused({7: 0.9, 8: 0.8}, {8: 3.0}))
    [8, 7]
    """
    sums: dict[int, float] = {}
    for ranking in rankings:
        for rank, number in enumerate(ranking, 1):
            sums[number] = sums.get(number, 0.0) + 1 / (SMOOTHING + rank)
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))
