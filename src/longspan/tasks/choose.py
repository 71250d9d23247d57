"""Choose: which of several continuations or answers fits a text; each is read beside the text."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np
import torch
from torch import Tensor

from longspan.datasets.forms import CHOICES
from longspan.errors import bad, no_tensor, whole
from longspan.families.backbone import Backbone
from longspan.families.task_model import TaskModel
from longspan.metrics.classification import accuracy
from longspan.nn.heads import FirstTokenHead
from longspan.pipeline import inputs
from longspan.pipeline.documents import Reading, ReadingInfo
from longspan.pipeline.inputs import Inputs
from longspan.pipeline.labels import Labeling
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import Pipeline, Results, head_output
from longspan.shapes import FloatArray
from longspan.tasks.base import Task
from longspan.tasks.classify import step
from longspan.tasks.losses import Loss, group_logsumexp, labels_of, mean


class Prompt(TypedDict):
    """A text and what may follow it."""

    prompt: str
    choices: Sequence[str]


class Chosen(TypedDict):
    """The best choice, and how likely each is."""

    index: int
    choice: str
    score: float
    scores: list[float]


class Choice(Chosen, ReadingInfo):
    """The best choice for a prompt, and what was read: sums over its choices."""


def build(backbone: Backbone, *, labels: int = 1) -> TaskModel:
    """A model with a new head."""
    c, ending = backbone.config.encoder, "ForMultipleChoice"
    own = c.own_head(ending, 1, backbone.word_embeddings)
    head = FirstTokenHead(c.width, 1, act=c.activation_in_head(ending), dropout=c.dropout, drop_first=False)
    return TaskModel(backbone, own or head, ending)


def prompts(prompt: object, choices: object = None) -> Inputs:
    """(prompt, list of choices), from a text and a list, two lists, or a list of dicts."""
    if choices is None:
        return inputs.dicts("prompt", prompt, ("prompt", "choices"), _offered)
    if isinstance(prompt, str):
        return Inputs([_offered("", prompt, choices)], ["prompt"], single=True)
    texts = inputs.listed("prompt", prompt, "a text or a list of texts")
    offered = inputs.listed("choices", choices, "a list of lists")
    if len(texts) != len(offered):
        raise bad("choices", f"one list for each of the {len(texts)} prompts", f"{len(offered)} lists")
    items = [_offered(f"[{i}]", *both) for i, both in enumerate(zip(texts, offered, strict=True))]
    return Inputs(items, [f"prompt[{i}]" for i in range(len(items))], single=False)


def _offered(place: str, prompt: object, choices: object) -> tuple[str, list[str]]:
    offered = inputs.listed("choices" + place, choices, "a list of texts")
    if not offered:
        raise bad("choices" + place, "a list of at least one text", offered)
    texts = [inputs.string("choices" + place, choice) for choice in offered]
    return inputs.string("prompt" + place, prompt), texts


def expanded(taken: Inputs) -> Inputs:
    """Each choice beside its prompt."""
    pairs = [(text, choice) for text, offered in taken.items for choice in offered]
    names = [name for name, (_, offered) in zip(taken.names, taken.items, strict=True) for _ in offered]
    return Inputs(pairs, names, single=False)


def targets(given: Labeling) -> list[Any]:
    """The right choice of each prompt, by its number: for each of its choices (how many there are, which)."""
    if any(len(document.pieces) > 1 for document in given.documents):
        repair = "Choices in several windows cannot be compared."
        raise bad("overflow", "'error' or 'truncate' where there are labels", "window", repair)
    return [
        (len(offered), whole("labels", right, 0, most=len(offered) - 1))
        for right, (_, offered) in zip(given.labels, given.inputs.items, strict=True)
        for _ in offered
    ]


def with_counts(batch: Batch, targets: Sequence[tuple[int, int]], given: Labeling) -> Batch:
    """Labels are how many choices each question has, and which are right: what `loss` takes."""
    counts: list[int] = []
    right: list[int] = []
    while sum(counts) < len(targets):
        count, chosen = targets[sum(counts)]
        counts.append(count)
        right.append(chosen)
    return replace(batch, labels=(counts, torch.tensor(right)))


def loss(scores: Tensor, counts: Sequence[int], right: Tensor) -> Tensor:
    """Cross-entropy over the choices of each question, which may differ in number.

    `scores` (documents, 1) holds the scores of the choices of one question after the other, `counts` how many
    there are of each, and `right` (questions,) which one is right.

    >>> loss(torch.zeros(5, 1), [3, 2], torch.tensor([0, 1]))
    tensor(0.8959)
    """
    return mean(_by_question(scores, counts, right))


def loss_sum(model: TaskModel, batch: Batch) -> Loss:
    """The sum over the questions of a batch, and how many these are."""
    counts, right = labels_of(batch, tuple)
    losses = _by_question(head_output(model, batch), counts, right)
    return Loss(losses.sum(), losses.numel())


def _by_question(scores: Tensor, counts: Sequence[int], right: Tensor) -> Tensor:
    if not isinstance(right, Tensor):
        raise no_tensor("right", right)
    sizes = torch.as_tensor(counts, device=scores.device)
    if int(sizes.sum()) != len(scores) or right.shape != sizes.shape:
        raise bad("counts", f"as many choices as the {len(scores)} documents", list(counts))
    if bool(((right < 0) | (right >= sizes)).any()):
        raise bad("right", "choices of their questions, counted from 0", right.tolist())
    question = torch.repeat_interleave(torch.arange(len(sizes), device=scores.device), sizes)
    norm = group_logsumexp(scores, question, len(sizes)).squeeze(1)
    chosen = scores[sizes.cumsum(0) - sizes + right].squeeze(1)
    return norm - chosen


def decode(choices: Sequence[str], outputs: Sequence[Sequence[FloatArray]]) -> Chosen:
    """The best choice; scores of a choice read in windows are averaged."""
    means = np.array([np.mean(windows) for windows in outputs], np.float32)
    likely = torch.from_numpy(means).softmax(0).tolist()
    best = int(np.argmax(means))
    return {"index": best, "choice": choices[best], "score": likely[best], "scores": likely}


def choose(
    pipeline: Pipeline, prompt: object, choices: object, options: Mapping[str, object]
) -> Results[Choice]:
    """The best choice for each prompt."""
    taken = prompts(prompt, choices)
    read = pipeline.read(CHOOSE, expanded(taken), step, options)
    results: list[Choice] = []
    for _, offered in taken.items:
        mine = [next(read) for _ in offered]
        tokens, cut, windows = zip(*(document.reading for document, _ in mine), strict=True)
        info = Reading(sum(tokens), sum(cut), max(windows)).info()
        results.append({**decode(offered, [outputs for _, outputs in mine]), **info})
    return Results(results, taken.single)


CHOOSE = Task(
    name="choose",
    aliases=("multiple-choice",),
    architecture="ForMultipleChoice",
    build=build,
    backbones="encoder",
    inputs=prompts,
    loss=loss,
    loss_sum=loss_sum,
    decode=decode,
    metric=accuracy,
    expand=expanded,
    targets=targets,
    form=CHOICES,
    padded_loss=lambda given: loss(
        given.outputs, [given.choices] * (len(given.outputs) // given.choices), given.labels
    ),
    attach=with_counts,
    global_tokens="choice",
    shortened=0,
    head_dropout=True,
)
