"""Losses as sums with weights: any split of a step into batches gives the same mean, and class weights."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.errors import InputError
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import head_output
from longspan.reader import Reader
from longspan.tasks import answer, choose, classify, encode, fill, tag
from longspan.tasks.class_weights import class_weights
from longspan.tasks.losses import Loss
from longspan.tasks.registry import TASKS
from unit.tasks.tiny import CORPUS, reader, summariser

TEXTS = [*CORPUS, "A short one.", "Rome."]
WEIGHTS = torch.tensor([0.5, 3.0, 0.25])


def tagger() -> Reader:
    made = reader("longformer", "tag")
    made.labels = ("O", "B-PER", "LOC")
    return made


def spans(text: str) -> list[tuple[int, int, str]]:
    return [(0, 4, "LOC")] if len(text) > 20 else []


def prepared(task: str, budget: int) -> tuple[Reader, list[Batch], dict[str, Any]]:
    """A reader, labeled batches of a budget, and options of the loss."""
    if task == "summarize":
        made = summariser(budget=budget)
        return made, made.prepare(TEXTS, labels=[text[:9] for text in TEXTS]), {"label_smoothing": 0.1}
    made = tagger() if task == "tag" else reader("bert", task)
    options: dict[str, Any] = {"budget": budget}
    if task == "classify":
        return made, made.prepare(TEXTS, labels=[2, 0, 1, 1, 0], **options), {}
    if task == "tag":
        return made, made.prepare(TEXTS, labels=[spans(text) for text in TEXTS], **options), {}
    if task == "answer":
        right: list[Any] = [[(0, 4)], [(3, 9)], [], [(0, 1), (2, 4)], [(0, 4)]]
        return made, made.prepare(["Who?"] * 5, TEXTS, labels=right, **options), {}
    if task == "choose":
        offered = [["x", "y"], ["p", "q", "r"], ["s"], ["t", "u"], ["v", "w"]]
        return made, made.prepare(TEXTS, offered, labels=[1, 2, 0, 0, 1], **options), {}
    assert task == "fill"
    masked = ["Anna [MASK] in [MASK].", "[MASK]", "the old [MASK] bridge", "a [MASK] b [MASK] c [MASK]"]
    return made, made.prepare(masked, labels=[[7, 9], [5], [33], [1, 2, 3]], **options), {}


def summed(task: str, made: Reader, batches: list[Batch], options: dict[str, Any]) -> tuple[Tensor, float]:
    """The loss of a step by the rule of the loop, and the weight."""
    losses = [TASKS[task].loss_sum(made.model, batch, **options) for batch in batches]
    total = torch.stack([loss.total for loss in losses]).sum()
    weight = sum(loss.weight for loss in losses)
    return total / weight, weight


def gradient(made: Reader, loss: Tensor) -> Tensor:
    weight = made.model.backbone.word_embeddings.weight
    (found,) = torch.autograd.grad(loss, weight)
    return found


def whole_mean(task: str, made: Reader, batch: Batch, options: dict[str, Any]) -> Tensor:
    """The mean loss of a batch, by the function that users call."""
    labels: Any = batch.labels
    if task == "fill":
        return fill.loss(made.model, batch, labels)
    if task == "summarize":
        return TASKS[task].loss(made.model, batch.ids, batch.layout, labels, batch.texts, **options)
    outputs = head_output(made.model, batch)
    if task == "answer":
        return answer.loss(outputs, batch.layout, labels)
    if task == "choose":
        return choose.loss(outputs, *labels)
    loss: Callable[..., Tensor] = TASKS[task].loss
    return loss(outputs, labels, **options)


@pytest.mark.parametrize("task", ["classify", "tag", "answer", "choose", "fill", "summarize"])
def test_sums_over_any_split_are_the_mean_of_the_whole(task: str) -> None:
    made, (everything,), options = prepared(task, budget=10**6)
    made.model = deepcopy(made.model).double()  # in which only a mistake is larger than rounding
    wanted = whole_mean(task, made, everything, options)
    slope = gradient(made, wanted)
    for budget in (1, 15, 10**6):
        _, batches, _ = prepared(task, budget)
        assert (len(batches) == 1) == (budget == 10**6)
        found, _ = summed(task, made, batches, options)
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(gradient(made, found), slope, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_class_weights_are_those_of_torchs_cross_entropy_over_any_split(task: str) -> None:
    made, (everything,), _ = prepared(task, budget=10**6)
    options = {"class_weights": WEIGHTS}
    labels: Any = everything.labels
    outputs = head_output(made.model, everything)
    wanted = F.cross_entropy(outputs, labels, WEIGHTS)
    torch.testing.assert_close(TASKS[task].loss(outputs, labels, **options), wanted)
    for budget in (1, 30):
        found, weight = summed(task, made, prepared(task, budget)[1], options)
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)
        assert weight == pytest.approx(float(WEIGHTS[labels[labels >= 0]].sum()))


def test_several_labels_at_once_have_torchs_pos_weight() -> None:
    logits = torch.tensor([[0.3, -1.0, 2.0], [0.1, 0.2, 0.0]], requires_grad=True)
    labels = torch.tensor([[1.0, 0, 1], [0, 1, 0]])
    wanted = F.binary_cross_entropy_with_logits(logits, labels, pos_weight=WEIGHTS)
    torch.testing.assert_close(classify.loss(logits, labels, class_weights=WEIGHTS), wanted)


@pytest.mark.parametrize("problem", ["multi", "regression"])
def test_tables_of_numbers_are_summed_over_all_their_numbers(problem: str) -> None:
    made = reader("bert", "classify")
    made.problem = problem
    rows: list[Any] = [[0, 2], [1], [], [0], [1, 2]] if problem == "multi" else [[0.5, 1, -2]] * 5
    (everything,) = made.prepare(TEXTS, labels=rows)
    wanted = classify.loss(head_output(made.model, everything), everything.labels, problem)  # type: ignore[arg-type]
    found, weight = summed(
        "classify", made, made.prepare(TEXTS, labels=rows, budget=30), {"problem": problem}
    )
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)
    assert weight == 15


def test_pairs_are_compared_within_their_batch() -> None:
    made = reader("bert", "encode")
    (batch,) = made.prepare(TEXTS, labels=TEXTS[::-1])
    assert isinstance(batch.labels, Batch)
    loss = TASKS["encode"].loss_sum(made.model, batch)
    wanted = encode.loss(head_output(made.model, batch), head_output(made.model, batch.labels))
    assert loss.weight == 5
    torch.testing.assert_close(loss.total / 5, wanted)
    for alone in made.prepare(TEXTS, labels=TEXTS[::-1], budget=1):
        assert TASKS["encode"].loss_sum(made.model, alone).total == 0  # nothing to confuse it with


def test_a_batch_without_anything_to_learn_weighs_nothing() -> None:
    made = tagger()
    (batch,) = made.prepare(TEXTS[:1], labels=[[]])
    assert isinstance(batch.labels, Tensor)
    batch.labels.fill_(-100)
    loss = TASKS["tag"].loss_sum(made.model, batch, class_weights=WEIGHTS)
    assert loss == Loss(torch.tensor(0.0), 0.0)
    assert not gradient(made, loss.total).any()
    assert tag.loss(torch.ones(2, 3), torch.tensor([-100, -100]), class_weights=WEIGHTS) == 0


def test_sums_of_half_logits_are_taken_in_float32() -> None:
    logits = torch.zeros(5000, 2, dtype=torch.bfloat16)
    assert tag.loss(logits, torch.ones(5000, dtype=torch.int64)).item() == pytest.approx(0.693147, abs=1e-5)
    multi = classify.loss(logits, torch.ones(5000, 2))
    assert multi.item() == pytest.approx(0.693147, abs=2e-3)  # each is rounded, their sum is not


def test_balanced_classes_weigh_alike_in_sum() -> None:
    labels = [torch.tensor([0, 0, 2, 0]), torch.tensor([2, -100, 0])]
    found = class_weights("balanced", "abc", labels)
    torch.testing.assert_close(found, 6 / (3 * torch.tensor([4.0, 1, 2])))  # b counts as if it had occurred
    assert found[0] * 4 == found[2] * 2
    several = [torch.tensor([[1.0, 0], [1, 0]]), torch.tensor([[1.0, 1], [0, 0]])]
    torch.testing.assert_close(class_weights("balanced", "ab", several), torch.tensor([1 / 3, 3.0]))
    always = [torch.ones(4, 1)]
    torch.testing.assert_close(class_weights("balanced", "a", always), torch.tensor([0.25]))


@pytest.mark.parametrize(
    ("wanted", "labels", "message"),
    [
        ("balance", [], "`class_weights` must be one of balanced, but is 'balance'. Did you mean balanced"),
        ("balanced", [], "`class_weights` must be given as numbers where there are no labels, but is"),
        ([1.0], [], r"`class_weights` must be one number for each of the 2 classes, but is \[1.0\]"),
        ([1.0, -1.0], [], "`class_weights` must be from 0 to 1e\\+06, but is -1.0"),
        ([1.0, "2"], [], "`class_weights` must be a number, but is '2'"),
        ({"yess": 2.0}, [], "`class_weights` must be one of no, yes, but is 'yess'. Did you mean yes"),
    ],
)
def test_class_weights_that_do_not_fit_are_refused(wanted: Any, labels: list[Tensor], message: str) -> None:
    with pytest.raises(InputError, match=message):
        class_weights(wanted, ["no", "yes"], labels)


def test_class_weights_of_a_loss_fit_its_logits() -> None:
    logits, labels = torch.zeros(2, 3), torch.tensor([0, 1])
    with pytest.raises(InputError, match="`class_weights` must be a tensor, but is a 'list'"):
        classify.loss(logits, labels, class_weights=[1.0, 2.0, 3.0])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"`class_weights` must be of shape \(3,\), but is \(2,\)"):
        tag.loss(logits, labels, class_weights=torch.ones(2))
    with pytest.raises(InputError, match="`class_weights` must be None for a regression, but is 'given'"):
        classify.loss(logits, torch.zeros(2, 3), "regression", class_weights=torch.ones(3))


def test_a_batch_without_labels_has_no_loss() -> None:
    for task in ("classify", "choose"):
        made = reader("bert", task)
        inputs: list[Any] = [TEXTS] if task == "classify" else [TEXTS, [["x", "y"]] * 5]
        (batch,) = made.prepare(*inputs)
        kind = "Tensor" if task == "classify" else "tuple"
        with pytest.raises(
            InputError, match=f"`batch.labels` must be a {kind}, but is 'NoneType'. Reader.prep"
        ):
            TASKS[task].loss_sum(made.model, batch)


def test_a_task_that_has_no_sum_says_so() -> None:
    made = reader("bert", "classify")
    (batch,) = made.prepare(TEXTS)
    with pytest.raises(InputError, match="`task` must be one with a `loss_sum`, but is 'without'"):
        TASKS["late-interaction"].loss_sum(made.model, batch)
