"""Batches hold every document once, within the budget; windows cover every token."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from longspan.errors import InputError
from longspan.layout import Layout
from longspan.pipeline.packing import pack, windows


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(1, 60))
def test_every_document_is_packed_once_within_the_budget(lengths: list[int], budget: int) -> None:
    documents = [[100 + i] * n for i, n in enumerate(lengths)]
    batches = pack(documents, budget=budget)
    assert sorted(i for batch in batches for i in batch.index) == list(range(len(lengths)))
    for batch in batches:
        assert batch.ids.tolist() == [token for i in batch.index for token in documents[i]]
        assert batch.layout == Layout.packed([lengths[i] for i in batch.index])
        assert batch.layout.size <= budget or len(batch.index) == 1
    sizes = [lengths[i] for batch in batches for i in batch.index]
    assert sizes == sorted(sizes, reverse=True)


def test_documents_may_take_more_of_the_budget_than_their_tokens() -> None:
    documents = [[5] * 3, [6] * 9, [7] * 4, [8] * 2]
    assert [batch.index for batch in pack(documents, budget=13, more=2)] == [(1,), (2, 0), (3,)]
    assert [batch.index for batch in pack(documents, budget=13, more=20)] == [(1,), (2,), (0,), (3,)]


def test_types_and_marks_go_with_their_document() -> None:
    documents = [[5, 6, 7], [8], [9, 9]]
    batches = pack(documents, token_types=[[0, 0, 1], [0], [0, 1]], marked=[[0], [], [1]])
    assert len(batches) == 1
    assert batches[0].token_types is not None
    assert batches[0].index == (0, 2, 1)
    assert batches[0].ids.tolist() == [5, 6, 7, 9, 9, 8]
    assert batches[0].token_types.tolist() == [0, 0, 1, 0, 1, 0]
    assert batches[0].layout == Layout.packed([3, 2, 1], marked=[[0], [1], []])


def test_arrays_and_tensors_are_documents_too() -> None:
    (batch,) = pack([np.array([1, 2], np.int32), torch.tensor([3])])
    assert batch.ids.dtype == torch.int64
    assert batch.ids.tolist() == [1, 2, 3]
    assert batch.token_types is None


@pytest.mark.parametrize(
    ("documents", "options", "message"),
    [
        ([], {}, "`documents` must be a list of at least one document"),
        ([[1], []], {}, r"`documents\[1\]` must be at least one token long"),
        ([[1.5]], {}, r"`documents\[0\]` must be a list of whole numbers"),
        ([[[1]]], {}, r"`documents\[0\]` must be a list of whole numbers"),
        ([[1, -2]], {}, r"`documents\[0\]` must be a list of ids from 0, but is -2"),
        ([[1]], {"budget": 0}, "`budget` must be at least 1"),
        ([[1]], {"token_types": [[0, 0]]}, "`token_types` must be of the same lengths"),
        ([[1]], {"marked": []}, "`marked` must be one list for each of the 1 documents"),
        ([[1]], {"marked": [[1]]}, "less than the document's length 1"),
    ],
)
def test_what_cannot_be_packed_is_refused(
    documents: list[Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        pack(documents, **options)


@given(st.integers(1, 300), st.integers(1, 50), st.integers(0, 49))
def test_windows_cover_every_token_with_the_overlap_asked_for(n: int, limit: int, overlap: int) -> None:
    if overlap >= limit:
        overlap = limit - 1
    found = windows(n, limit, overlap)
    assert found[0][0] == 0
    assert found[-1][1] == n
    assert all(stop - start == min(n, limit) for start, stop in found)
    assert all(a[1] - b[0] >= overlap for a, b in pairwise(found))
    assert all(a[1] - b[0] == overlap for a, b in pairwise(found[:-1]))
    assert len(found) == 1 or found[-2][1] < n, "a window is redundant"


@pytest.mark.parametrize(("n", "limit", "overlap"), [(0, 4, 0), (4, 0, 0), (4, 4, 4), (4, 4, -1)])
def test_windows_that_cannot_move_are_refused(n: int, limit: int, overlap: int) -> None:
    with pytest.raises(InputError, match="must be"):
        windows(n, limit, overlap)


def test_what_belongs_together_shares_a_batch_in_its_order() -> None:
    batches = pack([[5] * 3, [6] * 9, [7] * 4, [8] * 2], budget=9, together=[0, 0, 1, 1])
    assert [batch.index for batch in batches] == [(0, 1), (2, 3)]


def test_tags_of_all_documents_must_be_the_same() -> None:
    tags = [{"parent": np.zeros(2, np.int32)}, {"segment": np.zeros(1, np.int32)}]
    with pytest.raises(InputError, match=r"`tags\[1\]` must be a dict with parent, as tags\[0\]"):
        pack([[5, 6], [7]], tags=tags)
