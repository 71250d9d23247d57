"""A document's answer depends on nothing but the document: not on its batch mates, their order or history.

In deterministic mode it has the same bits always; otherwise the matrix library may block a batch of another
size otherwise, and numbers agree to 1e-5.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longspan.reader import Reader
from unit.tasks.tiny import CORPUS, FAMILIES, reader

WORDS = " ".join(CORPUS).split()
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=110).map(" ".join)
documents = st.lists(sentences, min_size=1, max_size=6)
every_family = pytest.mark.parametrize("family", FAMILIES)
Verb = Callable[[Reader, list[str]], list[Any]]


def vectors(found: Reader, texts: list[str]) -> list[Any]:
    return list(found.encode(texts))


def labels(found: Reader, texts: list[str]) -> list[Any]:
    return [
        [one["score"] for one in sorted(every, key=lambda one: one["label"])]
        for every in found.classify(texts, top_k=None)
    ]


def tags(found: Reader, texts: list[str]) -> list[Any]:
    return [
        [[one["score"], one["start"], one["end"]] for one in tagged]
        for tagged in found.tag(texts, ignore_labels=())
    ]


def answers(found: Reader, texts: list[str]) -> list[Any]:
    return [[one["score"] for one in several] for several in found.answer("Where is Rome?", texts, top_k=3)]


VERBS: dict[str, Verb] = {"encode": vectors, "classify": labels, "tag": tags, "answer": answers}
every_verb = pytest.mark.parametrize("task", VERBS)


def assert_same(found: list[Any], expected: list[Any], *, exactly: bool) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=0 if exactly else 1e-5)


@every_family
@every_verb
@pytest.mark.parametrize("deterministic", [True, False], ids=["deterministic", "packed"])
@settings(max_examples=15)
@given(documents, st.integers(1, 400), st.randoms(use_true_random=False))
def test_a_document_is_read_as_if_alone(
    family: str, task: str, deterministic: bool, texts: list[str], budget: int, random: Any
) -> None:
    found, verb = reader(family, task, overflow="window", deterministic=deterministic), VERBS[task]
    alone = [verb(found, [text])[0] for text in texts]
    order = list(range(len(texts)))
    random.shuffle(order)
    together = verb(
        reader(family, task, overflow="window", deterministic=deterministic, budget=budget), texts
    )
    shuffled = verb(found, [texts[i] for i in order])
    assert_same(together, alone, exactly=deterministic)
    assert_same(shuffled, [alone[i] for i in order], exactly=deterministic)


@every_family
@every_verb
def test_history_changes_nothing(family: str, task: str) -> None:
    found, verb, texts = reader(family, task, overflow="window"), VERBS[task], [*CORPUS, " ".join(WORDS * 3)]
    before = verb(found, texts)
    verb(found, [" ".join(WORDS * 7), "Rome"])
    verb(found, texts[::-1])
    assert_same(verb(found, texts), before, exactly=True)


@every_family
def test_equal_documents_get_equal_answers(family: str) -> None:
    found = reader(family, "encode", deterministic=True).encode([CORPUS[0], CORPUS[1], CORPUS[0]])
    np.testing.assert_array_equal(found[0], found[2])
