"""Rank: which documents answer a query best, by models that read both together or compare their tokens."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, NotRequired

import numpy as np

from longspan.errors import bad, whole
from longspan.pipeline import inputs
from longspan.pipeline.documents import Reading, ReadingInfo
from longspan.pipeline.inputs import Inputs
from longspan.pipeline.options import ReadingOptions
from longspan.pipeline.run import Pipeline
from longspan.shapes import Vector
from longspan.tasks.base import Ranking
from longspan.tasks.registry import TASKS


class RankOptions(ReadingOptions, total=False):
    """How documents are read, with the names that CrossEncoder of sentence-transformers has."""

    prompt: str | None
    prompt_name: str | None
    show_progress_bar: bool | None
    batch_size: int | None


class Ranked(ReadingInfo):
    """A document, how well it answers, and what was read of it."""

    corpus_id: int
    score: float
    text: NotRequired[str]


class Ranker(NamedTuple):
    """A model that gives a pair of a query and a document a score."""

    task: str
    pipeline: Pipeline
    config: Mapping[str, object]
    "config.json as it stands."
    prompt: str = ""
    "What is put before each query."


def check(ranker: Ranker) -> Ranking:
    """How a model gives scores; an InputError if it gives none."""
    rankers = [task.name for task in TASKS.values() if task.ranking is not None]
    ranking = TASKS[ranker.task].ranking
    if ranking is None:
        repair = "Use a re-ranker, such as a cross-encoder with one output."
        raise bad("task", f"{' or '.join(rankers)} to rank", ranker.task, repair)
    ranking.check(ranker.pipeline.model, ranker.config)
    return ranking


def rank(
    ranker: Ranker,
    query: object,
    documents: object,
    top_k: int | None,
    return_documents: bool,
    options: RankOptions,
) -> list[Ranked]:
    """The documents, the best first; equal ones in the given order."""
    asked = inputs.string("query", query)
    most = None if top_k is None else whole("top_k", top_k, 1)
    if isinstance(documents, str):
        raise bad("documents", "a list of texts", "str", "Use predict() for a single pair.")
    taken = inputs.texts("documents", documents)
    pairs = Inputs([(asked, text) for text in taken.items], taken.names, single=False)
    results: list[Ranked] = []
    for number, (score, reading) in enumerate(scores(ranker, pairs, options)):
        one: Ranked = {"corpus_id": number, "score": score, **reading.info()}  # type: ignore[typeddict-item]
        if return_documents:
            one["text"] = taken.items[number]
        results.append(one)
    return sorted(results, key=lambda one: -one["score"])[:most]


def predict(ranker: Ranker, pairs: object, options: RankOptions) -> Vector | float:
    """The score of each pair (B,), or of a single one."""
    taken = pairs_of(pairs)
    found = np.array([score for score, _ in scores(ranker, taken, options)], np.float32)
    return float(found[0]) if taken.single else found


def scores(ranker: Ranker, pairs: Inputs, options: RankOptions) -> Iterable[tuple[float, Reading]]:
    """A score for each pair and what was read of it; documents longer than the model in windows."""
    ranking = check(ranker)
    aside = ("batch_size", "prompt", "prompt_name")
    changes = {name: value for name, value in options.items() if name not in aside}
    shown = changes.pop("show_progress_bar", None)
    if shown is not None:
        changes["progress"] = shown
    if ranker.pipeline.options.overflow == "error":
        changes = {"overflow": "window"} | changes
    asked = pairs._replace(items=[(ranker.prompt + query, text) for query, text in pairs.items])
    return ranking.scores(ranker.pipeline, asked, ranker.config, changes)


def pairs_of(value: object) -> Inputs:
    """Pairs of a query and a document; two texts are a single one."""
    items = inputs.listed("pairs", value, "a list of pairs of texts")
    if len(items) == 2 and all(isinstance(item, str) for item in items):
        return Inputs([tuple(items)], ["pairs"], single=True)
    names = [f"pairs[{i}]" for i in range(len(items))]
    return Inputs([_pair(*one) for one in zip(names, items, strict=True)], names, single=False)


def _pair(name: str, value: object) -> tuple[str, str]:
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        raise bad(name, "a query and a document", value if isinstance(value, str) else type(value).__name__)
    return inputs.string(name, value[0]), inputs.string(name, value[1])
