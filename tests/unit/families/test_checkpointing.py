"""Gradient checkpointing: one switch for encoder and decoder, and the same gradients, bit for bit."""

from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor

from longspan.families.etc.model import EtcConfig
from longspan.families.longformer.model import LongformerConfig
from longspan.families.poolingformer.model import PoolingformerConfig
from longspan.families.seq2seq.model import Seq2SeqConfig
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.nn.layers import stacks
from longspan.tasks.registry import build
from unit.families.tiny import SIZES, some_ids

DECODER: dict[str, Any] = {"layers": 2, "heads": 2, "feed_forward": 8, "positions": 99}
TASKS = {"encoder": "classify", "etc": "classify", "pooling": "tag", "decoder": "summarize", "both": "answer"}


def made(name: str, dropout: float) -> TaskModel:
    sizes = SIZES | {"dropout": dropout, "attention_dropout": dropout, "layers": 2}
    long = LongformerConfig(**sizes | {"activation_dropout": dropout}, radius=5, token_types=0)
    kinds: dict[str, Any] = {"encoder": long, "etc": EtcConfig(**sizes, radius=5)}
    kinds["pooling"] = PoolingformerConfig(**sizes, radius=5)
    torch.manual_seed(0)
    return build(kinds.get(name) or Seq2SeqConfig(encoder=long, **DECODER), TASKS[name]).train()


def gradients(model: TaskModel) -> list[Tensor]:
    model.zero_grad()
    torch.manual_seed(3)
    ids, layout = some_ids(90), Layout.packed([60, 30], marked=[[0], [4]])
    writes = model.architecture == "ForConditionalGeneration"
    texts = (some_ids(9), Layout.packed([4, 5])) if writes else ()
    model(ids, layout, *texts).square().sum().backward()
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize("dropout", [0.0, 0.2])
@pytest.mark.parametrize("name", TASKS)
def test_one_switch_recomputes_every_layer_and_changes_no_gradient(name: str, dropout: float) -> None:
    model, calls = made(name, dropout), Counter[int]()
    for stack in stacks(model):
        for layer in stack:
            layer.register_forward_pre_hook(lambda module, _: calls.update([id(module)]))
    expected = gradients(model)
    assert set(calls.values()) == {1}
    model.gradient_checkpointing_enable()
    assert model.gradient_checkpointing
    found = gradients(model)
    assert set(calls.values()) == {3}  # once before, and now twice
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    model.gradient_checkpointing_disable()
    gradients(model)
    assert set(calls.values()) == {4}


def test_the_switch_of_a_model_is_that_of_its_backbone() -> None:
    model = made("decoder", 0.0)
    model.gradient_checkpointing = True
    assert model.backbone.gradient_checkpointing
    assert len(stacks(model)) == 2
    assert all(stack.gradient_checkpointing for stack in stacks(model))
    model.backbone.gradient_checkpointing_disable()
    assert not model.gradient_checkpointing
