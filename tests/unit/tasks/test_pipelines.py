"""Results have the shape and the numbers of transformers' pipelines."""

from pathlib import Path
from typing import Any

import pytest
import transformers

import longspan
from longspan.reader import Reader
from unit.tasks.tiny import CORPUS, model, tokenizer

pytestmark = pytest.mark.filterwarnings("ignore:Tokenizer does not support real words")
TEXTS = [*CORPUS, "Anna's (small) com-pany in Rome", "Zürich"]
LABELS = ["O", "B-PLACE", "I-PLACE", "B-NAME", "I-NAME"]


def both(
    family: str, task: str, folder: Path, problem: str | None = None, **names: Any
) -> tuple[Reader, Any]:
    """A reader and the pipeline for the same folder."""
    made = Reader(
        model(family, task, len(names["labels"]) if names else 3), tokenizer(family), problem=problem, **names
    )
    made.save(folder)
    kind = {"classify": "text-classification", "tag": "token-classification", "fill": "fill-mask"}[task]
    return longspan.load(folder), transformers.pipeline(kind, model=str(folder), device="cpu")


def assert_same(ours: list[Any], theirs: list[Any]) -> None:
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert set(other) <= set(mine)
        for key, value in other.items():
            assert mine[key] == (pytest.approx(value, abs=1e-5) if key == "score" else value), key


@pytest.mark.parametrize("family", ["longformer", "bert"])
@pytest.mark.parametrize("problem", [None, "single", "multi", "regression"])
def test_classify(family: str, problem: str | None, tmp_path: Path) -> None:
    ours, theirs = both(family, "classify", tmp_path, problem)
    assert_same(ours.classify(TEXTS), theirs(TEXTS))
    for mine, other in zip(ours.classify(TEXTS, top_k=None), theirs(TEXTS, top_k=None), strict=True):
        assert_same(mine, other)


def test_a_single_label_is_a_probability_of_its_own(tmp_path: Path) -> None:
    ours, theirs = both("bert", "classify", tmp_path, labels=["good"])
    assert_same(ours.classify(TEXTS), theirs(TEXTS))


def test_classify_pairs(tmp_path: Path) -> None:
    ours, theirs = both("bert", "classify", tmp_path)
    pair = {"text": CORPUS[0], "text_pair": "So it is."}
    assert_same([ours.classify(pair)], [theirs(pair)])


@pytest.mark.parametrize("family", ["longformer", "bert"])
@pytest.mark.parametrize("strategy", ["none", "simple", "first", "average", "max"])
def test_tag(family: str, strategy: str, tmp_path: Path) -> None:
    ours, theirs = both(family, "tag", tmp_path, labels=LABELS)
    found = ours.tag(TEXTS, aggregation_strategy=strategy)
    for mine, other in zip(found, theirs(TEXTS, aggregation_strategy=strategy), strict=True):
        assert_same(mine, other)


@pytest.mark.parametrize("family", ["longformer", "bert"])
def test_fill(family: str, tmp_path: Path) -> None:
    ours, theirs = both(family, "fill", tmp_path)
    mask = tokenizer(family).names["mask"]
    one, two = f"Anna lives in {mask}.", f"{mask} lives in {mask}."
    # Where the model has more words than the tokenizer, we give only those that can be written.
    known = [guess for guess in theirs(one, top_k=200) if guess["token"] < tokenizer(family).vocab_size][:5]
    assert_same(list(ours.fill(one)), known)
    for mine, other in zip(ours.fill(two), theirs(two, top_k=200), strict=True):
        assert_same(
            list(mine), [guess for guess in other if guess["token"] < tokenizer(family).vocab_size][:5]
        )
