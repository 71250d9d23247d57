"""The weights of the hybrid search: fitted to questions with answers, checked on others.

    python -m benchmarks.fusion --train INDEX DOCUMENTS QUESTIONS ... --check INDEX DOCUMENTS QUESTIONS ...

INDEX holds the files of DOCUMENTS; QUESTIONS is JSONL as `longspan eval search` reads it. Weights maximize
the likelihood that a passage with an answer is drawn from the candidates (softmax of the scores, an L2
penalty). Confidence is a logistic regression on what is known of the best candidate, where every question
counts three times: as it is, as if the passages that answer it were not there, and as if their document were
not. It and the weights of words alone are fitted to the first --train only: questions about speech, where
people rarely repeat its words, make them worse for writing. Prints what stands in search/fusion.py.
"""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from longspan.evaluate.questions import squeeze
from longspan.search import fusion, rank
from longspan.search.index import Index
from longspan.search.passages import encode_query
from longspan.shapes import BoolArray, FloatArray, IntArray

KINDS = {
    "tokens": fusion.FEATURES,
    "vectors": (*fusion.MEANING, *fusion.WORDS, *fusion.SHAPE),
    "words": (*fusion.WORDS, *fusion.SHAPE),
    "dense tokens": ("cosine", "document_cosine", "max_sim", "coverage"),
    "dense vectors": ("cosine", "document_cosine"),
}
_WORDS = (
    "covered",
    "covered_inside",
    "document_bm25",
    "document_best",
    "inside_bm25",
    "document_covered",
    "missing",
    "missing_name",
)
_MEANING = ("cosine", "document_cosine")
_TOKENS = ("max_sim", "coverage")
CONFIDENT = {
    len(KINDS["tokens"]): (*fusion.MEANING, *fusion.TOKENS, *_WORDS),
    len(KINDS["vectors"]): (*fusion.MEANING, *_WORDS),
    len(KINDS["words"]): _WORDS,
    len(KINDS["dense tokens"]): (*_MEANING, *_TOKENS),
    len(KINDS["dense vectors"]): _MEANING,
}
LIMITS = (600, 1800, 3600)


class Case(NamedTuple):
    """A question and its candidates."""

    question: str
    rows: IntArray
    documents: IntArray
    features: Mapping[str, FloatArray]
    texts: Sequence[str]
    answers: Sequence[str]
    right: BoolArray
    "Which candidates hold an answer."
    document: int
    "The document with the answer, -1 if there is none."


def cases(folder: Path, documents: Path, questions: Path) -> list[Case]:
    """The questions about the files of an index, with what the index knows of the candidates."""
    found = []
    with Index.open(folder) as index:
        view = index._view()
        number = {str(file.path): view._number[file.document] for file in view.files}
        for line in questions.read_text(encoding="utf-8").splitlines():
            asked = json.loads(line)
            gold = -1 if asked["file"] is None else number.get(str(documents / asked["file"]))
            if gold is None:
                continue
            query = view.signals(asked["question"], encode_query(index.reader, asked["question"]))
            rows, features = rank.candidates(view, query, np.flatnonzero(view._shape.lengths))
            owner = view.owner[rows]
            texts = [squeeze(row.text) for row in view.texts(rows).values()]
            answers = [squeeze(answer) for answer in asked["answers"]]
            right = np.array(
                [o == gold and any(a in t for a in answers) for o, t in zip(owner, texts, strict=True)]
            )
            found.append(Case(asked["question"], rows, owner, features, texts, answers, right, gold))
    return found


def reached(case: Case, scores: FloatArray) -> float:
    """Characters of results read until an answer is complete."""
    used = 0
    for place in np.argsort(-scores, kind="stable"):
        text = case.texts[place]
        if case.right[place]:
            return float(used + min(text.find(a) + len(a) for a in case.answers if a in text))
        used += len(text)
        if used > LIMITS[-1]:
            break
    return math.inf


def shares(found: Sequence[Case], weights: Mapping[str, float]) -> list[float]:
    """The shares of questions answered within each limit, and with the right document first."""
    own = [case for case in found if case.document >= 0]
    scores = [_scores(case, weights) for case in own]
    at = np.array([reached(case, score) for case, score in zip(own, scores, strict=True)])
    first = [c.documents[s.argmax()] == c.document for c, s in zip(own, scores, strict=True)]
    return [*(float((at <= limit).mean()) for limit in LIMITS), float(np.mean(first))]


def _scores(case: Case, weights: Mapping[str, float]) -> FloatArray:
    return np.asarray(np.sum([w * case.features[name] for name, w in weights.items()], axis=0))


def fit(found: Sequence[Case], names: Sequence[str], penalty: float = 3e-3) -> dict[str, float]:
    """Weights by maximum likelihood."""
    own = [case for case in found if case.right.any()]
    tables = [np.stack([case.features[name] for name in names], 1) for case in own]
    spread = np.concatenate(tables).std(0) + 1e-6
    most = max(map(len, tables))
    x = torch.zeros(len(own), most, len(names))
    there, right = torch.full((2, len(own), most), -1e9)
    for i, (case, table) in enumerate(zip(own, tables, strict=True)):
        x[i, : len(table)] = torch.from_numpy(table / spread)
        there[i, : len(table)] = 0
        right[i, : len(table)][torch.from_numpy(case.right)] = 0
    weights = torch.zeros(len(names), requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        scores = x @ weights
        likelihood = torch.logsumexp(scores + right, 1) - torch.logsumexp(scores + there, 1)
        loss = penalty * weights.square().sum() - likelihood.mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    return dict(zip(names, (weights.detach().numpy() / spread).round(3).tolist(), strict=True))


def confidence(
    found: Sequence[Case], weights: Mapping[str, float]
) -> tuple[dict[str, float], FloatArray, FloatArray]:
    """Weights of the probability that there is an answer among the candidates; and it with the truth."""
    names = (*CONFIDENT[len(weights)], "share", "constant")
    rows, truth, importance = [], [], []
    for case in found:
        if not case.right.any():
            continue
        scores = _scores(case, weights)
        for left, right, worth in (
            (np.ones(len(scores), bool), 1.0, 1.0),
            (~case.right, 0.0, 0.5),
            (case.documents != case.document, 0.0, 0.5),
        ):
            if left.any():
                rows.append(evidence(case, np.where(left, scores, -1e9), names))
                truth.append(right)
                importance.append(worth)
    x, y, w = (torch.tensor(np.array(each), dtype=torch.float64) for each in (rows, truth, importance))
    spread = x.std(0) + 1e-9
    spread[-1] = 1.0
    line = torch.zeros(len(names), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([line], max_iter=300, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits((x / spread) @ line, y, w)
        (loss + 1e-3 * line.square().sum()).backward()
        return loss

    optimizer.step(closure)
    fitted = (line.detach() / spread).numpy()
    likely = 1 / (1 + np.exp(-(x.numpy() @ fitted)))
    return dict(zip(names, fitted.round(3).tolist(), strict=True)), likely, y.numpy()


def evidence(case: Case, scores: FloatArray, names: Sequence[str]) -> list[float]:
    """What the best candidate says of whether there is an answer at all."""
    best = int(scores.argmax())
    known = {"share": float(1 / np.exp(scores - scores[best]).sum()), "constant": 1.0}
    return [known[name] if name in known else float(case.features[name][best]) for name in names]


def told(found: Sequence[Case], weights: Mapping[str, float], line: Mapping[str, float]) -> str:
    """How well questions without an answer are told from those that have one."""
    values = {True: [], False: []}  # type: dict[bool, list[float]]
    for case in found:
        x = evidence(case, _scores(case, weights), list(line))
        values[case.document >= 0].append(float(np.dot(x, list(line.values()))))
    yes, no = np.array(values[True]), np.array(values[False])
    if not len(no):
        return ""
    limit = np.quantile(yes, 0.1)
    told_of = f"{(no < limit).mean():.2f} of {len(no)} told"
    return f"at 10 % of {len(yes)} lost: {told_of}; limit {1 / (1 + np.exp(-limit)):.2f}"


def main() -> None:
    """Fit, check, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--train", nargs=3, action="append", type=Path, required=True)
    parser.add_argument("--check", nargs=3, action="append", type=Path, default=[])
    options = parser.parse_args()
    first, *more = [cases(*places) for places in options.train]
    train = [*first, *(case for found in more for case in found)]
    checks = {places[2].stem: cases(*places) for places in options.check}
    print(len(train), "questions")
    for kind, names in KINDS.items():
        weights = fit(first if kind == "words" else train, names)
        line, likely, truth = confidence(first, weights)
        print(f'"{kind}": {weights},\n    confidence {line}')
        yes, no = likely[truth > 0], likely[truth == 0]
        limit = np.quantile(yes, 0.1)
        print(f"    answered or not: at {limit:.2f} 10 % are lost, {(no < limit).mean():.2f} told")
        for name, found in {"train": train, **checks}.items():
            print(
                "   ", name, [round(share, 3) for share in shares(found, weights)], told(found, weights, line)
            )


if __name__ == "__main__":
    main()
