"""The loss of words against torch's own cross entropy of all scores at once."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.errors import InputError
from longspan.nn import chunked_cross_entropy as subject
from longspan.nn.chunked_cross_entropy import IGNORE_INDEX, chunked_cross_entropy

WIDTH, VOCAB = 7, 61


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "ROWS", 5)


def given(rows: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x, weight, bias and labels, of which every third is not learnt."""
    draw = torch.Generator().manual_seed(rows)
    sizes = (rows, WIDTH), (VOCAB, WIDTH), (VOCAB,)
    x, weight, bias = (3 * torch.randn(size, generator=draw, dtype=torch.float64).to(dtype) for size in sizes)
    labels = torch.randint(VOCAB, (rows,), generator=draw)
    labels[2::3] = IGNORE_INDEX
    return x.requires_grad_(), weight.requires_grad_(), bias, labels


def plain(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    labels: Tensor,
    smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    scores = F.linear(x, weight, bias)
    return F.cross_entropy(scores, labels, label_smoothing=smoothing, reduction=reduction)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("rows", [1, 4, 5, 6, 13])
def test_loss_and_gradients_are_those_of_all_scores_at_once(
    rows: int, smoothing: float, reduction: str
) -> None:
    x, weight, bias, labels = given(rows)
    ours, wanted = (
        chunked_cross_entropy(x, weight, bias, labels, label_smoothing=smoothing, reduction=reduction),
        plain(x, weight, bias, labels, smoothing, reduction),
    )
    torch.testing.assert_close(ours, wanted)
    for mine, right in zip(
        torch.autograd.grad(ours, (x, weight)), torch.autograd.grad(wanted, (x, weight)), strict=True
    ):
        torch.testing.assert_close(mine, right)


def test_in_float32_it_is_as_exact_as_torch() -> None:
    exact = plain(*given(13))
    ours, naive = (loss(*given(13, torch.float32)) for loss in (chunked_cross_entropy, plain))
    assert (
        abs(ours.double() - exact) <= 2 * abs(naive.double() - exact) + torch.finfo(torch.float32).eps * exact
    )


def test_the_upstream_gradient_scales_both_and_the_backward_pass_can_be_repeated() -> None:
    x, weight, bias, labels = given(13)
    loss, wanted = chunked_cross_entropy(x, weight, bias, labels), plain(x, weight, bias, labels)
    for factor in (1.0, 0.25, 1.0):
        ours = torch.autograd.grad(loss * factor, (x, weight), retain_graph=True)
        for mine, right in zip(
            ours, torch.autograd.grad(wanted * factor, (x, weight), retain_graph=True), strict=True
        ):
            torch.testing.assert_close(mine, right)


def test_a_weight_that_is_used_elsewhere_too_gets_the_gradients_of_all_its_uses() -> None:
    _, weight, bias, labels = given(13)
    grads: list[Tensor] = []
    for loss in (chunked_cross_entropy, plain):
        weight.grad = None
        x = F.embedding(labels.clamp(min=0), weight)  # tied: the words are looked up and scored
        (loss(x, weight, bias, labels) + 2 * loss(x.flip(0), weight, bias, labels) + weight.sum()).backward()
        assert weight.grad is not None
        grads.append(weight.grad)
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("learnt", ["x", "weight", "neither"])
def test_what_is_not_learnt_gets_no_gradient(learnt: str) -> None:
    x, weight, bias, labels = given(13)
    x.requires_grad_(learnt == "x")
    weight.requires_grad_(learnt == "weight")
    ours, wanted = chunked_cross_entropy(x, weight, bias, labels), plain(x, weight, bias, labels)
    torch.testing.assert_close(ours, wanted)
    if learnt != "neither":
        source = x if learnt == "x" else weight
        for mine, right in zip(
            torch.autograd.grad(ours, source), torch.autograd.grad(wanted, source), strict=True
        ):
            torch.testing.assert_close(mine, right)
    assert ours.requires_grad == (learnt != "neither")


def test_without_gradients_none_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "empty_like", None)
    monkeypatch.setattr(torch, "zeros_like", None)
    x, weight, bias, labels = given(13)
    with torch.no_grad():
        torch.testing.assert_close(
            chunked_cross_entropy(x, weight, bias, labels), plain(x, weight, bias, labels)
        )


@pytest.mark.parametrize("rows", [0, 7])
def test_where_nothing_is_learnt_loss_and_gradients_are_zero(rows: int) -> None:
    x, weight, bias, labels = given(rows)
    loss = chunked_cross_entropy(x, weight, bias, labels.fill_(IGNORE_INDEX))
    assert loss == 0
    for grad in torch.autograd.grad(loss, (x, weight)):
        assert not grad.any()


def test_words_that_are_ruled_out_by_the_bias_stay_so() -> None:
    x, weight, bias, labels = given(13)
    labels[(labels == 3) | (labels == 0)] = 4
    bias[[0, 3]] = -torch.inf
    ours, wanted = (loss(x, weight, bias, labels) for loss in (chunked_cross_entropy, plain))
    torch.testing.assert_close(ours, wanted)
    torch.testing.assert_close(*(torch.autograd.grad(loss, weight)[0] for loss in (ours, wanted)))


@pytest.mark.parametrize("label", [VOCAB, -5])
def test_a_label_that_is_no_word_is_refused(label: int) -> None:
    x, weight, bias, labels = given(7)
    labels[1] = label
    with pytest.raises((RuntimeError, IndexError), match="out of bounds"):
        chunked_cross_entropy(x, weight, bias, labels)


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_half_weights_are_computed_with_in_float32(half: torch.dtype) -> None:
    x, weight, bias, labels = (one.detach() for one in given(7, half))
    x, weight = x.requires_grad_(), weight.requires_grad_()
    ours = chunked_cross_entropy(x, weight, bias, labels)
    wanted = plain(x.float(), weight.float(), bias.float(), labels)
    torch.testing.assert_close(ours, wanted)
    (mine,), (right,) = (torch.autograd.grad(loss, weight) for loss in (ours, wanted))
    assert mine.dtype == half
    torch.testing.assert_close(mine, right)


def test_autocast_changes_nothing_inside() -> None:
    x, weight, bias, labels = given(7, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        ours = chunked_cross_entropy(x, weight, bias, labels)
    torch.testing.assert_close(ours, plain(x, weight, bias, labels))


def test_scores_of_few_rows_stand_in_memory_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    addmm = torch.addmm

    def watched(*tensors: Tensor, out: Tensor) -> Tensor:
        made.append(out.untyped_storage().data_ptr())
        assert out.untyped_storage().nbytes() == 5 * VOCAB * 8
        return addmm(*tensors, out=out)

    monkeypatch.setattr(torch, "addmm", watched)
    chunked_cross_entropy(*given(13))
    assert len(made) == 3
    assert len(set(made)) == 1


def test_there_are_two_reductions() -> None:
    with pytest.raises(InputError, match="`reduction` must be one of mean, sum, but is 'none'"):
        chunked_cross_entropy(*given(3), reduction="none")


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_bias_is_learnt_where_it_has_a_gradient(reduction: str) -> None:
    x, weight, bias, labels = given(13)
    bias.requires_grad_()
    ours = chunked_cross_entropy(x, weight, bias, labels, reduction=reduction)
    wanted = F.cross_entropy(F.linear(x, weight, bias), labels, reduction=reduction)
    inputs = x, weight, bias
    for mine, right in zip(
        torch.autograd.grad(0.5 * ours, inputs), torch.autograd.grad(0.5 * wanted, inputs), strict=True
    ):
        torch.testing.assert_close(mine, right)


def test_no_bias_is_a_bias_of_zeros() -> None:
    x, weight, bias, labels = given(13)
    ours = chunked_cross_entropy(x, weight, None, labels)
    torch.testing.assert_close(ours, plain(x, weight, torch.zeros_like(bias), labels))
