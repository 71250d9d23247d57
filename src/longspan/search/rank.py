"""Ranking: exact products of vectors, the best of many scores, and the fusion of two rankings."""

import platform
from collections.abc import Mapping

import numpy as np

from longspan.errors import bad, whole
from longspan.shapes import FloatArray, IntArray

MODES = ("hybrid", "dense", "bm25")
BY = ("passage", "document")
SMOOTHING = 60
"""The constant of reciprocal rank fusion (Cormack et al., 2009)."""
MARGIN = 1 / 512 if platform.machine().lower() in ("x86_64", "amd64") else 1 / 64
"""The largest error of half precision for vectors of length 1: twice what rounding the query and the product
can cause; where a processor may also add in half precision, ten times what was measured."""
CHUNK = 1 << 14


def check_options(query: object, top: object, mode: object, by: object) -> None:
    """Raise an InputError for options that a search cannot have."""
    if not isinstance(query, str) or not query.strip():
        raise bad("query", "a text that is not empty", query)
    if mode not in MODES:
        raise bad("mode", f"one of {', '.join(MODES)}", mode)
    if by not in BY:
        raise bad("by", f"one of {', '.join(BY)}", by)
    whole("top", top, 1)


def scan(vectors: FloatArray, query: FloatArray, rows: IntArray, count: int) -> dict[int, float]:
    """The `count` of `rows` with the largest products with the query, largest first, and these products.

    All rows are compared in half precision (vectors (N, C) are float16), then in float32 those that may be
    among the best: the result is that of a scan in float32.

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

    result: FloatArray = torch.mv(torch.from_numpy(vectors), torch.from_numpy(query).half()).float().numpy()
    return result


def exact(vectors: FloatArray, queries: FloatArray) -> FloatArray:
    """The products of rows (N, C) with queries (Q, C), in float32: (N, Q).

    By torch, as all products of a query: numpy's threads and torch's would wait for each other.
    """
    import torch

    result: FloatArray = torch.mm(torch.from_numpy(vectors).float(), torch.from_numpy(queries).t()).numpy()
    return result


def best(rows: IntArray, scores: FloatArray, count: int) -> dict[int, float]:
    """The `count` rows with the largest scores, largest first; of equal scores, the lower row first.

    >>> best(np.array([4, 5, 6]), np.array([1.0, 3.0, 1.0]), 2)
    {5: 3.0, 4: 1.0}
    """
    if count < len(rows):
        among = scores >= np.partition(scores, -count)[-count]
        rows, scores = rows[among], scores[among]
    order = np.lexsort((rows, -scores))[:count]
    return dict(zip(rows[order].tolist(), scores[order].tolist(), strict=True))


def fuse(*rankings: Mapping[int, float]) -> dict[int, float]:
    """Reciprocal rank fusion: the sum of 1 / (60 + rank) over the rankings, best first.

    >>> list(fuse({7: 0.9, 8: 0.8}, {8: 3.0}))
    [8, 7]
    """
    sums: dict[int, float] = {}
    for ranking in rankings:
        for rank, number in enumerate(ranking, 1):
            sums[number] = sums.get(number, 0.0) + 1 / (SMOOTHING + rank)
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


def passage_scores(queries: FloatArray, vectors: FloatArray, parts: FloatArray) -> FloatArray:
    """(Q, C), (P, C), (P, K, C) -> (Q, P): the mean of the cosines with a passage and with its best part."""
    best = exact(parts.reshape(-1, parts.shape[2]), queries).reshape(*parts.shape[:2], -1).max(1)
    scores: FloatArray = (exact(vectors, queries) + best).T / 2
    return scores


def document_scores(document: FloatArray, best_passage: FloatArray) -> FloatArray:
    """The mean of the cosine with a document and the score of its best passage."""
    return (document + best_passage) / 2
