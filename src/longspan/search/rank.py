"""Which passages are best: by an exact scan of vectors, by words, or by both ranks."""

import platform
from collections.abc import Mapping

import numpy as np

from longspan.errors import bad, whole
from longspan.shapes import FloatArray, IntArray

MODES = ("hybrid", "dense", "bm25")
BY = ("passage", "document")
SMOOTHING = 60
"""Of reciprocal rank fusion (Cormack et al., 2009)."""
MARGIN = 1 / 512 if platform.machine().lower() in ("x86_64", "amd64") else 1 / 64
"""How wrong half precision may be for vectors of length 1: twice what rounding query and product can give,
and where processors may also add in half precision, ten times what that was seen to give."""
CHUNK = 1 << 14


def asked(query: object, top: object, mode: object, by: object) -> None:
    """Check what a search is asked for."""
    if not isinstance(query, str) or not query.strip():
        raise bad("query", "a text that is not empty", query)
    if mode not in MODES:
        raise bad("mode", f"one of {', '.join(MODES)}", mode)
    if by not in BY:
        raise bad("by", f"one of {', '.join(BY)}", by)
    whole("top", top, 1)


def scan(vectors: FloatArray, query: FloatArray, rows: IntArray, count: int) -> dict[int, float]:
    """The `count` of `rows` whose product with the query is largest, largest first, and these products.

    Every row is looked at: quickly in half precision (vectors (N, C) are float16), then in float32 whatever
    might still be among the best, so that the answer is that of a scan in float32.

    >>> table, query = np.eye(4, dtype=np.float16), np.arange(4, dtype=np.float32)
    >>> scan(table, query, np.array([0, 1, 3]), 2)
    {3: 3.0, 1: 1.0}
    """
    count = min(count, len(rows))
    if 4 * len(rows) > len(vectors):
        rough = products(vectors, query)[rows]
        rows = rows[rough >= np.partition(rough, -count)[-count] - 2 * MARGIN * np.linalg.norm(query)]
    parts = np.split(rows, range(CHUNK, len(rows), CHUNK))
    return best(rows, np.concatenate([exact(vectors[part], query[None])[:, 0] for part in parts]), count)


def products(vectors: FloatArray, query: FloatArray) -> FloatArray:
    """The product of every row (N, C) with the query, to half precision."""
    import torch

    found: FloatArray = torch.mv(torch.from_numpy(vectors), torch.from_numpy(query).half()).float().numpy()
    return found


def exact(vectors: FloatArray, queries: FloatArray) -> FloatArray:
    """The products of rows (N, C) with queries (Q, C), in float32: (N, Q).

    By torch, as all products of a query are: numpy's threads and torch's would wait for each other.
    """
    import torch

    found: FloatArray = torch.mm(torch.from_numpy(vectors).float(), torch.from_numpy(queries).t()).numpy()
    return found


def best(rows: IntArray, scores: FloatArray, count: int) -> dict[int, float]:
    """The `count` rows of the largest scores, largest first, and of equal ones the first.

    >>> best(np.array([4, 5, 6]), np.array([1.0, 3.0, 1.0]), 2)
    {5: 3.0, 4: 1.0}
    """
    if count < len(rows):
        among = scores >= np.partition(scores, -count)[-count]
        rows, scores = rows[among], scores[among]
    order = np.lexsort((rows, -scores))[:count]
    return dict(zip(rows[order].tolist(), scores[order].tolist(), strict=True))


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


def passage_scores(queries: FloatArray, vectors: FloatArray, parts: FloatArray) -> FloatArray:
    """(Q, C), (P, C), (P, K, C) -> (Q, P): half the cosine with a passage, half that with its best part."""
    best = exact(parts.reshape(-1, parts.shape[2]), queries).reshape(*parts.shape[:2], -1).max(1)
    scores: FloatArray = (exact(vectors, queries) + best).T / 2
    return scores


def document_scores(alike: FloatArray, best: FloatArray) -> FloatArray:
    """Half the cosine with a document, half the score of its best passage."""
    return (alike + best) / 2
