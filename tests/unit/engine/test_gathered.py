"""Plans for keys that stand elsewhere: shared by several documents, or fewer than the plan was made for."""

import numpy as np
import pytest
import torch

from longspan import attention, plan
from longspan.errors import InputError
from longspan.layout import Layout
from longspan.patterns import Full

TEXTS = Layout.packed([1, 1])
ROWS = np.array([[0, 1, 4, 2], [0, 3, 5, 6]])
"""Two texts that begin with the same row."""


def keys(size: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    q, *kv = torch.randn(3, size, 2, 5, generator=torch.Generator().manual_seed(0))
    return q[:2], kv[0], kv[1]


def test_gathered_rows_are_seen_as_if_they_were_copied() -> None:
    q, k, v = keys(7)
    apart = plan(Full(), TEXTS, Layout.packed([4, 4]), heads=2)
    rows = ROWS.reshape(-1)
    assert torch.equal(attention(q, k, v, apart.gathered(rows, 7)), attention(q, k[rows], v[rows], apart))


@pytest.mark.parametrize("length", [1, 3, 63, 64, 65, 127])
def test_a_plan_for_whole_tiles_serves_texts_that_are_shorter(length: int) -> None:
    q, k, v = keys(2 * length)
    size = -(-length // 64) * 64
    rows = np.random.default_rng(1).permutation(2 * length).reshape(2, length)
    wanted = attention(
        q,
        k[rows.reshape(-1)],
        v[rows.reshape(-1)],
        plan(Full(), TEXTS, Layout.packed([length] * 2), heads=2),
    )
    wide = plan(Full(), TEXTS, Layout.packed([size] * 2), heads=2)
    padded = np.pad(rows, ((0, 0), (0, size - length)), constant_values=-1)
    assert torch.equal(attention(q, k, v, wide.gathered(padded.reshape(-1), 2 * length)), wanted)


@pytest.mark.parametrize(
    "rows", [[-1, 0, 2, 1], [-1, -1, 0, 1], [0, 1, 2, 7], [0, 1, -2, -2], [0, 1, 2]], ids=str
)
def test_rows_that_a_kernel_must_not_see_are_refused(rows: list[int]) -> None:
    made = plan(Full(), TEXTS, Layout.packed([2, 2]), heads=2)
    with pytest.raises(InputError, match="`rows` must be"):
        made.gathered(np.array(rows), 7)


def test_nothing_is_differentiated_by_gathered_rows() -> None:
    q, k, v = keys(7)
    made = plan(Full(), TEXTS, Layout.packed([4, 4]), heads=2).gathered(ROWS.reshape(-1), 7)
    with pytest.raises(InputError, match="gathered"):
        attention(q.requires_grad_(), k, v, made)
