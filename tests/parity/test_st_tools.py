"""Tools of sentence-transformers take a Reader in the place of a SentenceTransformer, and find the same."""

import warnings
from pathlib import Path
from typing import Any

import pytest

import longspan
from longspan.reader import Reader
from unit.tasks.tiny import CORPUS, reader

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it imports
    from sentence_transformers import SentenceTransformer, util
    from sentence_transformers.sentence_transformer.evaluation import (
        EmbeddingSimilarityEvaluator,
        InformationRetrievalEvaluator,
        TripletEvaluator,
    )

TEXTS = [*CORPUS, "the capital of England", "a company in Rome", "words of long documents"]


@pytest.fixture(autouse=True)
def engine() -> None:
    """Nothing here depends on the kernel."""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Reader, Any]:
    folder = tmp_path_factory.mktemp("st")
    made = reader("bert", "encode")
    Reader(made.model, made.tokenizer, prompts={"query": "find ", "document": "read "}).save(folder)
    return longspan.load(folder), SentenceTransformer(str(folder), device="cpu")


def test_semantic_search(both: tuple[Reader, Any]) -> None:
    found, expected = (
        util.semantic_search(each.encode_query(TEXTS[3:]), each.encode_document(TEXTS[:3]), top_k=2)
        for each in both
    )
    for mine, other in zip(found, expected, strict=True):
        assert [hit["corpus_id"] for hit in mine] == [hit["corpus_id"] for hit in other]
        assert [hit["score"] for hit in mine] == pytest.approx([hit["score"] for hit in other], abs=1e-5)


def test_paraphrase_mining(both: tuple[Reader, Any]) -> None:
    found, expected = (util.paraphrase_mining(each, TEXTS, show_progress_bar=False) for each in both)
    assert [pair[1:] for pair in found] == [pair[1:] for pair in expected]
    assert [pair[0] for pair in found] == pytest.approx([pair[0] for pair in expected], abs=1e-5)


def evaluators() -> list[Any]:
    corpus, queries = (dict(enumerate(map(str, part))) for part in (TEXTS[:3], TEXTS[3:]))
    named = [{str(key): text for key, text in part.items()} for part in (queries, corpus)]
    relevant = {str(i): {str(i)} for i in range(3)}
    return [
        InformationRetrievalEvaluator(*named, relevant, name="search", mrr_at_k=[2], ndcg_at_k=[2]),
        EmbeddingSimilarityEvaluator(TEXTS[:3], TEXTS[3:], [0.9, 0.5, 0.1], name="pairs"),
        TripletEvaluator(TEXTS[:2], TEXTS[1:3], TEXTS[3:5], name="triplets"),
    ]


@pytest.mark.parametrize("number", range(3))
def test_evaluators(both: tuple[Reader, Any], number: int, tmp_path: Path) -> None:
    ours, theirs = both
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found, expected = evaluators()[number](ours), evaluators()[number](theirs)
    assert found == pytest.approx(expected, abs=1e-4)
    name = ("search", "pairs", "triplets")[number]
    assert ours.model_card_data.results[name] == found
