"""The best stretch of a context, as a search through all finds it; the loss for several right ones."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from longspan.errors import InputError
from longspan.layout import Layout
from longspan.pipeline.documents import Document, Piece
from longspan.tasks.answer import decode, loss
from longspan.tasks.losses import group_logsumexp
from longspan.text.encoding import Encoding
from machine import using_at_most

CONTEXT = "ab cd  ef gh ij kl"


def pieces_of(rows: list[range]) -> Document:
    """<s> ? </s></s> and the words of CONTEXT and </s>, of which each piece holds some words."""
    words = [(0, 2), (3, 5), (6, 9), (10, 12), (13, 15), (16, 18)]  # the third one with a space before it
    source = np.array([-1, 0, -1, -1, *[1] * 6, -1])
    offsets = np.array([(0, 0), (0, 1), (0, 0), (0, 0), *words, (0, 0)])
    zeros = np.zeros(11, np.int64)
    frame = [0, 1, 2, 3], [10]
    pieces = [np.array([*frame[0], *(4 + np.array(held)), *frame[1]]) for held in rows]
    encoding = Encoding(zeros, zeros, offsets, source)
    return Document(encoding, np.zeros(11, bool), [Piece(held, np.ones(held.size, bool)) for held in pieces])


def searched(scores: np.ndarray, longest: int) -> tuple[int, int, float]:
    """First and last word and score, by trying all pairs; scores are of a document read at once."""
    allowed = [0, *range(4, 10)]
    start, end = (torch.from_numpy(scores[allowed, i]).softmax(0)[1:].numpy() for i in (0, 1))
    pairs = [(i, j) for i in range(6) for j in range(i, min(6, i + longest))]
    best = max(pairs, key=lambda pair: start[pair[0]] * end[pair[1]])
    return *best, float(start[best[0]] * end[best[1]])


@given(st.integers(0, 10**6), st.integers(1, 9))
def test_the_best_stretch_is_found(seed: int, longest: int) -> None:
    scores = np.random.default_rng(seed).normal(size=(11, 2)).astype(np.float32) * 3
    document = pieces_of([range(6)])
    (found,) = decode(CONTEXT, document, [scores], top_k=1, longest=longest, impossible=False)
    first, last, score = searched(scores, longest)
    words = document.encoding.offsets[4:10]
    assert found["answer"] == CONTEXT[words[first, 0] : words[last, 1]].strip()
    assert found["answer"] == CONTEXT[found["start"] : found["end"]]
    assert found["score"] == pytest.approx(score, rel=1e-4)


def test_the_best_of_several_windows_wins_and_no_stretch_is_given_twice() -> None:
    scores = np.zeros((11, 2), np.float32)
    document = pieces_of([range(4), range(2, 6)])
    first, second = scores[document.pieces[0].rows], scores[document.pieces[1].rows]
    second[4 + 3] = 5.0  # the last word
    found = decode(CONTEXT, document, [first, second], top_k=30, longest=2, impossible=False)
    assert found[0]["answer"] == "kl"
    spans = [(answer["start"], answer["end"]) for answer in found]
    assert len(spans) == len(set(spans)) == 11
    assert all(a["score"] >= b["score"] for a, b in pairwise(found))
    assert sum(answer["score"] for answer in found) <= 1.0


def test_no_answer_is_an_answer_if_asked_for() -> None:
    scores = np.zeros((11, 2), np.float32)
    scores[0] = 4.0
    document = pieces_of([range(6)])
    (found,) = decode(CONTEXT, document, [scores], top_k=1, longest=3, impossible=True)
    assert (found["answer"], found["start"], found["end"]) == ("", 0, 0)
    (found,) = decode(CONTEXT, document, [scores], top_k=1, longest=3, impossible=False)
    assert found["answer"]


def test_no_answer_takes_every_window_to_say_so() -> None:
    document = pieces_of([range(3), range(3, 6)])
    first, second = np.zeros((8, 2), np.float32), np.zeros((8, 2), np.float32)
    first[0] = 4.0
    second[5] = 3.0
    (found,) = decode(CONTEXT, document, [first, second], top_k=1, longest=3, impossible=True)
    assert found["answer"] == "ij"


def test_a_context_of_no_tokens_has_no_answer() -> None:
    found = decode(
        CONTEXT,
        pieces_of([range(0)]),
        [np.zeros((5, 2), np.float32)],
        top_k=1,
        longest=3,
        impossible=False,
    )
    assert found == [{"score": 0.0, "start": 0, "end": 0, "answer": ""}]


def test_a_long_document_takes_little_memory() -> None:
    size = 50_000  # all pairs would take 10 GB
    source = np.array([-1, *[1] * size])
    offsets = np.stack([np.arange(size + 1), np.arange(size + 1) + 1], axis=1)
    zeros = np.zeros(size + 1, np.int64)
    piece = Piece(np.arange(size + 1), np.ones(size + 1, bool))
    document = Document(Encoding(zeros, zeros, offsets, source), zeros.astype(bool), [piece])
    scores = np.zeros((size + 1, 2), np.float32)
    scores[40_000, 0] = scores[40_029, 1] = 9.0
    with using_at_most(64 << 20):
        (found,) = decode("x" * (size + 1), document, [scores], top_k=1, longest=30, impossible=False)
    assert (found["start"], found["end"]) == (40_000, 40_030)


def test_any_of_several_right_spans_will_do() -> None:
    source = torch.Generator().manual_seed(2)
    found = torch.randn(9, 2, generator=source, dtype=torch.float64, requires_grad=True)
    spans = [[(0, 1), (2, 3), (2, 3)], [], [(1, 1)]]
    lengths = (4, 2, 3)
    expected = torch.zeros((), dtype=torch.float64)
    for rows, right in zip(found.split(lengths), spans, strict=True):
        for i in (0, 1):
            chosen = sorted({span[i] for span in right})
            if chosen:
                expected = expected + (rows[:, i].logsumexp(0) - rows[chosen, i].logsumexp(0)) / 4
    ours = loss(found, Layout.packed(lengths), spans)
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(*(torch.autograd.grad(value, found)[0] for value in (ours, expected)))


def test_padding_takes_no_part_in_the_loss() -> None:
    found = torch.randn(8, 2, generator=torch.Generator().manual_seed(4))
    mask = np.array([[True] * 4, [True, True, True, False]])
    packed = loss(found[:7], Layout.packed([4, 3]), [[(1, 2)], [(0, 2)]])
    torch.testing.assert_close(loss(found, Layout.padded(mask), [[(1, 2)], [(0, 2)]]), packed)


def test_bad_spans_are_errors() -> None:
    with pytest.raises(InputError, match="`spans` must be one list for each of the 1 documents"):
        loss(torch.zeros(3, 2), Layout.packed([3]), [])
    with pytest.raises(
        InputError, match=r"`spans` must be at least 0, but is -1\. Give \[\] for a document without"
    ):
        loss(torch.zeros(3, 2), Layout.packed([3]), [[(-1, -1)]])
    with pytest.raises(InputError, match="`scores` must be of shape"):
        loss(torch.zeros(3, 1), Layout.packed([3]), [[(0, 0)]])


def test_an_empty_group_has_no_gradient() -> None:
    values = torch.tensor([[1.0], [-torch.inf], [700.0]], requires_grad=True)
    found = group_logsumexp(values, torch.tensor([0, 1, 2]), 4)
    assert found.flatten().tolist() == [1.0, -torch.inf, 700.0, -torch.inf]
    (gradient,) = torch.autograd.grad(found[found.isfinite()].sum(), values)
    assert gradient.flatten().tolist() == [1.0, 0.0, 1.0]
