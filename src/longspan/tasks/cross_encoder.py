"""Cross-encoders: a classifier reads a query and a document together, and its output is their score."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import torch

from longspan.errors import bad
from longspan.families.task_model import TaskModel
from longspan.pipeline.documents import Reading, ReadingRules
from longspan.pipeline.inputs import Inputs
from longspan.pipeline.run import Pipeline, Step
from longspan.shapes import FloatArray
from longspan.tasks.base import Ranking

ACTIVATIONS = ("Identity", "Sigmoid")
"""What sentence-transformers applies to the output; files name classes of torch, which are not imported."""
_PATH = re.compile(r"torch\.nn\.(?:modules\.(?:activation|linear)\.)?(\w+)", re.ASCII)
_FIELD = "sentence_transformers"
_EARLIER = "sbert_ce_default_activation_function"


def ranking(rules: ReadingRules, step: Step) -> Ranking:
    """How the classifiers that `step` runs score pairs; a document that is too long is read in windows."""
    mine = replace(rules, name="rank", shortened=1)

    def scores(
        pipeline: Pipeline, pairs: Inputs, config: Mapping[str, object], options: Mapping[str, object]
    ) -> Iterator[tuple[float, Reading]]:
        """The best window of a document counts."""
        activation = activation_of(config)
        for document, outputs in pipeline.read(mine, pairs, step, options):
            yield float(relevance(np.stack(outputs), activation).max()), document.reading

    return Ranking(scores, _check)


def relevance(logits: FloatArray, activation: str) -> FloatArray:
    """(windows, 1 or 2) -> (windows,): the activated output, or how likely the second of two labels is.

    >>> relevance(np.array([[0.0, 0.0]], np.float32), "Identity").tolist()
    [0.5]
    """
    rows = torch.from_numpy(logits)
    if rows.shape[1] == 2:
        return (rows[:, 1] - rows[:, 0]).sigmoid().numpy()
    return (rows.sigmoid() if activation == "Sigmoid" else rows)[:, 0].numpy()


def activation_of(config: Mapping[str, object]) -> str:
    """What is applied to a single output: as config.json says, else a sigmoid, as sentence-transformers does.

    >>> activation_of({"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}})
    'Identity'
    """
    own = config.get(_FIELD)
    stated = own.get("activation_fn") if isinstance(own, Mapping) else None
    stated = config.get(_EARLIER) if stated is None else stated
    if stated is None:
        return "Sigmoid"
    match = _PATH.fullmatch(stated) if isinstance(stated, str) else None
    if match is None or match[1] not in ACTIVATIONS:
        raise bad("activation_fn", "torch.nn.Identity or torch.nn.Sigmoid", stated, "Change config.json.")
    return match[1]


def with_activation(config: Mapping[str, object], stated: Mapping[str, object]) -> dict[str, object]:
    """config.json with what config_sentence_transformers.json says of the activation, which goes first."""
    chosen, own = stated.get("activation_fn"), config.get(_FIELD)
    if chosen is None:
        return dict(config)
    return {**config, _FIELD: {**(own if isinstance(own, Mapping) else {}), "activation_fn": chosen}}


def _check(model: TaskModel, config: Mapping[str, object]) -> None:
    outputs = len(model.get_parameter("head.out.bias"))
    if outputs > 2:
        repair = "Use a cross-encoder, or classify() with a text and a text_pair."
        raise bad("labels", "one or two to rank", outputs, repair)
    activation_of(config)
