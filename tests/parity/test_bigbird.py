"""BigBird computes what transformers computes for a document without padding, evaluating and training.

A padded batch is no yardstick: there a document's last block and random blocks depend on its batch mates.
Each length has a fresh peer, as one short input makes it compute full attention ever after.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from longspan.families.bigbird.model import BigBirdConfig
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from parity.peers import HEADS, close, compare, hidden, output, padded, pair, same_gradients, words

SHORT = 28
"""The longest document that sees everything: (5 + 2 * 1) blocks of 4."""


def draws(model: TaskModel, plan: str) -> TaskModel:
    """The same weights with another plan of random blocks, in training."""
    assert isinstance(model.config, BigBirdConfig)
    model.backbone.config = replace(model.config, random=plan)
    return model.train()


def run(theirs: Any, ours: TaskModel, ids: Tensor) -> None:
    expected = output(theirs(ids[None]))
    given = hidden(ours)(ids, Layout.packed([len(ids)]))
    compare(theirs, ours, given[0] if expected.dim() == 1 else given, expected)


@pytest.mark.parametrize("n", [1, 13, SHORT, SHORT + 1, 50, 90, 96])
def test_the_body_agrees_at_any_length(tmp_path: Path, n: int) -> None:
    run(*pair(tmp_path, "BigBird", "Model"), *words(n))


@pytest.mark.parametrize("plan", ["hf-train", "hf"])
@pytest.mark.parametrize("n", [13, SHORT + 1, 50, 90])
def test_the_body_agrees_in_training(tmp_path: Path, n: int, plan: str) -> None:
    theirs, ours = pair(tmp_path, "BigBird", "Model")
    run(theirs.train(), draws(ours, plan), *words(n))


@pytest.mark.parametrize("n", [1000, 1100])
def test_the_body_agrees_in_training_where_the_published_plan_is_used_and_where_it_is_not(
    tmp_path: Path, n: int
) -> None:
    sizes = {"block_size": 64, "num_random_blocks": 3, "max_position_embeddings": 4096}
    theirs, ours = pair(tmp_path, "BigBird", "Model", **sizes)
    run(theirs.train(), draws(ours, "hf"), *words(n))


@pytest.mark.parametrize("n", [13, 50])
@pytest.mark.parametrize("head", [*HEADS[:4], "ForPreTraining", "ForCausalLM"])
def test_every_head_agrees(tmp_path: Path, head: str, n: int) -> None:
    decoder = {"is_decoder": True, "attention_type": "original_full"}  # else long documents see what follows
    theirs, ours = pair(tmp_path, "BigBird", head, **(decoder if head == "ForCausalLM" else {}))
    (ids,) = words(n)
    answer = theirs(ids[None])
    expected = answer.prediction_logits[0] if head == "ForPreTraining" else output(answer)
    given = hidden(ours)(ids, Layout.packed([n]))
    compare(theirs, ours, given[0] if expected.dim() == 1 else given, expected)


@pytest.mark.parametrize("n", [13, 50])
def test_answers_agree_and_are_never_in_the_question(tmp_path: Path, n: int) -> None:
    theirs, ours = pair(tmp_path, "BigBird", "ForQuestionAnswering")
    (ids,) = words(n)
    ids[5] = 2  # the question ends here
    types = (torch.arange(n) > 5).long()
    expected, given = output(theirs(ids[None])), ours(ids, Layout.packed([n]), types)
    close(given[1:6].detach() / 1e6, expected[1:6].detach() / 1e6)
    assert given[1:6].max() < -1e5
    seen = types.bool() | (torch.arange(n) == 0)
    compare(theirs, ours, given[seen], expected[seen])


def test_the_choice_between_documents_agrees(tmp_path: Path) -> None:
    theirs, ours = pair(tmp_path, "BigBird", "ForMultipleChoice")
    lengths = (22, 17, 8)  # all short: these may be padded
    ids = words(*lengths)
    batch = padded(ids, 0)[None]  # (choices, L) -> (1, choices, L)
    expected = theirs(batch, attention_mask=(batch != 0).long()).logits[0]
    compare(theirs, ours, ours(torch.cat(ids), Layout.packed(lengths))[:, 0], expected)


@pytest.mark.parametrize(
    "changes",
    [
        {"attention_type": "original_full"},
        {"use_bias": False},
        {"rescale_embeddings": True},
        {"block_size": 3, "num_random_blocks": 2, "hidden_act": "relu"},
    ],
    ids=str,
)
def test_other_configs_agree(tmp_path: Path, changes: dict[str, Any]) -> None:
    run(*pair(tmp_path, "BigBird", "ForMaskedLM", **changes), *words(50))


def test_types_are_told_apart(tmp_path: Path) -> None:
    theirs, ours = pair(tmp_path, "BigBird", "Model")
    (ids,), types = words(50), torch.arange(50) % 2
    expected = output(theirs(ids[None], token_type_ids=types[None]))
    given = ours.backbone(ids, Layout.packed([50]), types)
    close(given.detach(), expected.detach())
    same_gradients(theirs, ours, given, expected)


def test_short_documents_packed_end_to_end_agree_with_a_padded_batch(tmp_path: Path) -> None:
    theirs, ours = pair(tmp_path, "BigBird", "ForTokenClassification")
    lengths = (19, 27, 7)
    ids = words(*lengths)
    batch, real = padded(ids, 0), padded([torch.ones(n, dtype=torch.bool) for n in lengths], 0)
    expected = theirs(batch, attention_mask=real.long()).logits[real]
    compare(theirs, ours, ours(torch.cat(ids), Layout.packed(lengths)), expected)
