"""Terms say what they want."""

import pytest
import torch

from longspan.engine.call import attention
from longspan.engine.labels import ClippedDistance
from longspan.engine.plan import plan
from longspan.engine.terms import RelativeKeys, ScoreTable, Term
from longspan.errors import InputError
from longspan.layout import Layout
from longspan.patterns import Full, Window

ROWS = Layout.packed([20])
LABELLED = plan(Window(5), ROWS, heads=2, labels=ClippedDistance(3))
X = torch.randn(20, 2, 4, generator=torch.Generator().manual_seed(1))


def test_a_table_of_slopes_is_alibi() -> None:
    limit = 19
    made = plan(Full(), ROWS, heads=2, labels=ClippedDistance(limit))
    distance = torch.arange(-limit, limit + 1.0)
    slopes = torch.tensor([0.5, 0.25])
    found = attention(X, X, X, made, terms=[ScoreTable(-distance.abs()[:, None] * slopes)])
    place = torch.arange(20.0)
    bias = -(place[None] - place[:, None]).abs() * slopes[:, None, None]  # (H, N, N)
    score = torch.einsum("nhd,khd->hnk", X, X) / 2 + bias
    torch.testing.assert_close(found, torch.einsum("hnk,khd->nhd", score.softmax(-1), X))


def test_relative_keys_of_zero_change_nothing() -> None:
    plain = plan(Window(5), ROWS, heads=2)
    found = attention(X, X, X, LABELLED, terms=[RelativeKeys(torch.zeros(7, 2, 4))])
    torch.testing.assert_close(found, attention(X, X, X, plain))


def test_a_label_that_no_pair_has_gets_no_gradient() -> None:
    made = plan(Window(2), ROWS, heads=2, labels=ClippedDistance(9))
    table = torch.randn(19, 2, requires_grad=True)
    (grad,) = torch.autograd.grad(attention(X, X, X, made, terms=[ScoreTable(table)]).sin().sum(), table)
    assert not grad[:7].any()
    assert not grad[12:].any()
    assert bool(grad[7:12].all())


@pytest.mark.parametrize(
    ("term", "message"),
    [
        (
            RelativeKeys(torch.zeros(8, 2, 4)),
            r"`relative` must be of shape \(7, 2, 4\) = \(labels, heads, head",
        ),
        (RelativeKeys(torch.zeros(7, 2, 4), torch.zeros(3, 4)), r"`content` must be of shape \(2, 4\)"),
        (RelativeKeys(torch.zeros(7, 2, 4).double()), "`relative` must be of dtype torch.float32 like `q`"),
        (ScoreTable(torch.zeros(7, 3)), r"`table` must be of shape \(7, 2\) = \(labels, heads\)"),
        (ScoreTable(torch.zeros(7, 2, device="meta")), "`table` must be on cpu like `q`"),
        (torch.zeros(7, 2), "`terms` must be at most one RelativeKeys and one ScoreTable"),
    ],
)
def test_a_term_that_does_not_fit_is_refused(term: Term, message: str) -> None:
    with pytest.raises(InputError, match=message):
        attention(X, X, X, LABELLED, terms=[term])


def test_two_terms_of_a_kind_are_refused() -> None:
    with pytest.raises(InputError, match="at most one"):
        attention(X, X, X, LABELLED, terms=[ScoreTable(torch.zeros(7, 2))] * 2)


def test_a_term_outside_of_a_list_is_refused() -> None:
    with pytest.raises(InputError, match=r"`terms` must be a list, but is 'ScoreTable'. Write terms=\["):
        attention(X, X, X, LABELLED, terms=ScoreTable(torch.zeros(7, 2)))  # type: ignore[call-overload]


def test_terms_need_a_plan_with_labels() -> None:
    with pytest.raises(InputError, match="labels=ClippedDistance"):
        attention(X, X, X, plan(Window(5), ROWS, heads=2), terms=[ScoreTable(torch.zeros(7, 2))])


def test_terms_of_the_wrong_rank_are_refused_at_once() -> None:
    with pytest.raises(InputError, match=r"`relative` must be of shape \(L, H, D\), but is \(7, 2\)"):
        RelativeKeys(torch.zeros(7, 2))
    with pytest.raises(InputError, match=r"`content` must be of shape \(H, D\)"):
        RelativeKeys(torch.zeros(7, 2, 4), torch.zeros(4))
    with pytest.raises(InputError, match=r"`table` must be a tensor of shape \(L, H\)"):
        ScoreTable([[0.0]])  # type: ignore[arg-type]
