"""What vectors say of a query: cosines of passages, and MaxSim of their tokens."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longspan.search import fusion
from longspan.search.answer import token_weights
from longspan.shapes import FloatArray, IntArray

if TYPE_CHECKING:
    from longspan.search.rank import Signals
    from longspan.search.view import View
    from longspan.search.ways import QueryVectors

PRODUCTS = 1 << 24
"""How many products of tokens are held at once: a query may be as long as a page."""
MOST = 1 << 20
"""How many tokens of an index a query is compared with at most, if the model was made to compare tokens."""
AT_ONCE = 1 << 17
"""How many of them are unpacked at once."""


class Own(NamedTuple):
    """A model's own scores: the largest product of each token of the query with a token of the passage."""

    scores: FloatArray
    "(rows,): their mean over the query's tokens; NaN for passages that were not compared."
    near: FloatArray
    "(rows,): the same on the scale of cosines, which stand for passages that were not compared."
    cosine: tuple[float, float]
    max_sim: tuple[float, float]
    "The mean and the spread of both, over the passages that were compared."

    def standard(self, rows: IntArray) -> FloatArray:
        """The scores of rows, in spreads from the mean of all; far below it for those not compared."""
        mean, spread = self.max_sim
        standard: FloatArray = np.nan_to_num((self.scores[rows] - mean) / spread, nan=-9.0)
        return standard

    def scaled(self, features: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """What is known of candidates, with the spread that weights were fitted to."""
        scales = dict.fromkeys(fusion.MEANING, (self.cosine, fusion.COSINES))
        scales |= dict.fromkeys(fusion.TOKENS, (self.max_sim, fusion.MAX_SIMS))
        return {
            name: column if name not in scales else _moved(column, *scales[name])
            for name, column in features.items()
        }


def own_scores(view: "View", vectors: "QueryVectors", rows: IntArray) -> Own:
    """Compare a query with as many passages as have MOST tokens, the nearest by their vectors first."""
    starts, ends = view.token_spans
    sizes = ends - starts
    rows = rows[view.read[rows] & (sizes[rows] > 0)]
    near, scores = cosines(view, vectors.vector), np.full(len(view.owner), np.nan, np.float32)
    if sizes[rows].sum() > MOST:
        order = rows[np.argsort(-near[rows], kind="stable")]
        rows = np.sort(order[np.cumsum(sizes[order]) <= MOST])
    for held in np.array_split(rows, 1 + int(sizes[rows].sum()) // AT_ONCE):
        if len(held):
            scores[held] = _max_sims(view, vectors, starts[held], ends[held]).mean(1)
    cosine, max_sim = _spread(near[rows]), _spread(scores[rows])
    near[rows] = _moved(scores[rows], max_sim, cosine)
    return Own(scores, near, cosine, max_sim)


def _moved(values: FloatArray, before: tuple[float, float], after: tuple[float, float]) -> FloatArray:
    """Values of one mean and spread as those of another."""
    moved: FloatArray = after[0] + after[1] * (values - before[0]) / before[1]
    return moved


def _spread(values: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation; never 0."""
    return (float(values.mean()), max(float(values.std()), 1e-6)) if len(values) else (0.0, 1.0)


def _max_sims(view: "View", vectors: "QueryVectors", starts: IntArray, ends: IntArray) -> FloatArray:
    """(P, Q): the largest cosine of each token of the query with a token of each passage."""
    from longspan.nn.max_sim import max_sim
    from longspan.search.token_codes import unpack

    sizes = ends - starts
    behind = np.cumsum(sizes)
    place = np.repeat(starts - behind + sizes, sizes) + np.arange(sizes.sum())
    codes, scales, _ = unpack(view.tokens[place], vectors.tokens.shape[1])
    return max_sim(_unit(vectors), codes, scales, behind - sizes, behind)


def _unit(vectors: "QueryVectors") -> FloatArray:
    unit: FloatArray = vectors.tokens / np.maximum(
        np.linalg.norm(vectors.tokens, axis=1, keepdims=True), 1e-9
    )
    return unit


def rarities(query: "Signals", owner: IntArray) -> FloatArray:
    """(n, Q): how much each token of the query counts in each of some documents, by rarity inside of it."""
    own = {
        number: token_weights(query, query.said.rarity_inside[:, number]) for number in set(owner.tolist())
    }
    return np.array([own[number] for number in owner.tolist()])


def by_vectors(view: "View", query: "Signals", rows: IntArray, owner: IntArray) -> dict[str, FloatArray]:
    """Cosines with the sum of the query's tokens, each as rare as its word in the document, or anywhere."""
    assert query.vectors is not None
    parts, read = query.vectors.parts, view.read[rows]
    gram = _matmul(parts, parts.T)
    near = np.where(read[:, None], view.vectors[np.where(read, rows, 0)].astype(np.float32), 0)
    along = _matmul(near, parts.T)  # (n, Q)

    def cosine(weights: FloatArray) -> FloatArray:
        length = np.sqrt(np.maximum((_matmul(weights, gram) * weights).sum(-1), 1e-12))
        result: FloatArray = (along * weights).sum(1) / length
        return result

    rare = token_weights(query, query.said.rarity)
    return {"inside_cosine": cosine(rarities(query, owner)), "rare_cosine": cosine(rare)}


def by_tokens(view: "View", query: "Signals", rows: IntArray, owner: IntArray) -> dict[str, FloatArray]:
    """MaxSim of the query's tokens, and how much of each passage they match."""
    assert query.vectors is not None
    content = token_weights(query, np.ones(len(query.terms))) > 0
    rare = token_weights(query, query.said.rarity)
    starts, ends = view.token_spans
    starts, ends = starts[rows], ends[rows]
    sums: dict[str, FloatArray] = {name: np.zeros(len(rows)) for name in fusion.TOKENS}
    blocks = -(-int((ends - starts).sum()) * len(content) // PRODUCTS)
    for held in np.array_split(np.flatnonzero(ends > starts), max(1, blocks)):
        if not len(held):
            continue
        sizes = (ends - starts)[held]
        begins = np.cumsum(sizes) - sizes
        place = np.repeat(starts[held] - begins, sizes) + np.arange(sizes.sum())
        products, worth = token_products(view, query.vectors, place)
        maxima = np.maximum.reduceat(products, begins)  # (n, Q)
        own = rarities(query, owner[held])
        sums["max_sim"][held] = maxima.mean(1)
        sums["inside_max_sim"][held] = (maxima * own).sum(1) / own.sum(1)
        sums["rare_max_sim"][held] = (maxima * rare).sum(1) / rare.sum()
        matched = products[:, content].max(1)
        counted = np.maximum(np.add.reduceat(worth, begins), 1e-9)
        sums["coverage"][held] = np.add.reduceat(matched * worth, begins) / counted
    return sums


def token_products(view: "View", vectors: "QueryVectors", place: IntArray) -> tuple[FloatArray, FloatArray]:
    """The cosines (n, Q) of some tokens of the index with those of the query, and how much each counts."""
    from longspan.nn.max_sim import max_sim
    from longspan.search.token_codes import unpack

    codes, scales, worth = unpack(view.tokens[place], vectors.tokens.shape[1])
    each = np.arange(len(codes))
    return max_sim(_unit(vectors), codes, scales, each, each + 1), worth


def cosines(view: "View", vector: FloatArray) -> FloatArray:
    """(rows,): the product of every row with the query, to half precision; 0 where there is no vector."""
    result = np.zeros(len(view.owner), np.float32)
    result[: len(view.vectors)] = products(view.vectors, vector)[: len(result)]
    return result


def products(vectors: FloatArray, query: FloatArray) -> FloatArray:
    """The product of every row (N, C) with the query, to half precision."""
    import torch

    result: FloatArray = torch.mv(torch.from_numpy(vectors), torch.from_numpy(query).half()).float().numpy()
    return result


def _matmul(a: FloatArray, b: FloatArray) -> FloatArray:
    """a @ b by torch: numpy has threads of its own, and two pools of threads wait for each other."""
    import torch

    left = torch.from_numpy(a)
    result: FloatArray = (left @ torch.from_numpy(b).to(left.dtype)).numpy()
    return result
