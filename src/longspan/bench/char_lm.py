"""The language model of bytes: a step against dense causal attention, a long step, and writing on and on."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import truediv
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan.bench.bars import Bar, at_most, times
from longspan.bench.measure import Run
from longspan.families.char_lm.files import SMALL, TINY
from longspan.families.char_lm.model import CharLM, CharLMConfig, new_model, set_windows
from longspan.families.char_lm.stream import Stream
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.nn.rotary import RotaryAttention, Rotations, rotate
from longspan.recipes.char_lm.windows import Windows, next_byte_loss

ROTARY = replace(SMALL, position_type="rotary", dropout=0.0, activation_dropout=0.0)
"""The paper's small model with its windows of the first phase, and angles."""
LONG, SHORT = 8192, 2048
LONGEST = 23_040
NEAR, FAR, WRITTEN = 1_000, 100_000, 64
GIGABYTE = 1e9


class DenseAttention(nn.Module):
    """The same weights, and torch's attention to all that came before; one document."""

    def __init__(self, like: RotaryAttention) -> None:
        super().__init__()
        self.qkv, self.out, self.heads = like.qkv, like.out, like.heads

    def forward(self, x: Tensor, pairs: object, turn: Rotations, *, scratch: Tensor | None = None) -> Tensor:
        qkv = rotate(self.qkv(x), 2 * self.heads, turn)
        q, k, v = qkv.view(len(x), 3, self.heads, -1).permute(1, 2, 0, 3)  # (N, 3C) -> (H, N, D)
        return (
            F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
            .transpose(0, 1)
            .flatten(1)
        )


@dataclass(frozen=True, kw_only=True)
class StepJob:
    """A training step with AdamW over random bytes; or only the attentions of its layers, both ways."""

    who: str = "ours"
    """"ours", or "dense": torch's causal attention in every layer."""
    config: CharLMConfig = ROTARY
    lengths: tuple[int, ...] = (LONG,)
    attention_only: bool = False
    windows: int = 1
    "How many times wider than in the first phase."
    checkpointing: bool = False
    family: str = "char-lm"
    training: bool = True
    warm_up: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def layers(self) -> int:
        """All of them."""
        return self.config.layers

    def __call__(self) -> Run:
        model = self.model()
        if self.attention_only:
            return attentions(model, Layout.packed(self.lengths))
        text = np.random.default_rng(0).integers(0, 256, sum(self.lengths) + 1, np.uint8)
        windows = Windows(text, self.config, self.lengths[0]).batch(np.arange(len(self.lengths)), 0)
        batch = windows._replace(layout=Layout.packed(self.lengths))  # as if none went across the end
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)

        def step() -> None:
            next_byte_loss(model, batch).total.backward()
            optimizer.step()
            optimizer.zero_grad()

        return Run(step, grad=True)

    def model(self) -> TaskModel:
        """In training."""
        torch.manual_seed(0)
        model = new_model(self.config).train()
        set_windows(model, tuple(self.windows * radius for radius in self.config.radii))
        model.gradient_checkpointing = self.checkpointing
        if self.who == "dense":
            for layer in model.backbone.get_submodule("layers").children():
                layer.attention = DenseAttention(layer.attention)  # type: ignore[arg-type]
        return model


def attentions(model: TaskModel, layout: Layout) -> Run:
    """Forward and backward through the attention of each layer, from hidden states to contexts."""
    backbone = model.backbone
    assert isinstance(backbone, CharLM)
    x = torch.randn(layout.size, backbone.config.width, requires_grad=True)
    upstream = torch.ones_like(x)
    inputs = [backbone.finished(own) for own in backbone.inputs_between(layout, layout)]

    def call() -> None:
        for layer, own in zip(backbone.layers, inputs, strict=True):
            attention: Any = layer.attention
            attention(x, *own).backward(upstream)
        x.grad = None
        model.zero_grad()

    return Run(call, grad=True)


@dataclass(frozen=True, kw_only=True)
class WritingJob:
    """Some bytes, one by one, behind a text of a length."""

    position: int
    config: CharLMConfig = TINY
    lengths: tuple[int, ...] = (WRITTEN,)
    "Bytes that are written."
    who: str = "ours"
    family: str = "char-lm"
    training: bool = False
    warm_up: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def layers(self) -> int:
        """All of them."""
        return self.config.layers

    def __call__(self) -> Run:
        torch.manual_seed(0)
        stream = Stream(new_model(self.config).eval())
        stream.read(torch.randint(256, (self.position,)))

        def write() -> None:
            for token in range(*self.lengths):
                stream.read(torch.tensor([token]))

        return Run(write)


Parts = tuple[str, dict[str, Any], tuple[Bar, ...]]
"""Name, jobs and bars of a case."""


def cases() -> tuple[Parts, ...]:
    """All cases."""
    step = StepJob()
    per_token = at_most("x time per byte of n 2048", 1.15, "n 2048", truediv)
    same = (SHORT,) * (LONG // SHORT)
    steps = {"ours": step, "dense": replace(step, who="dense"), "n 2048": replace(step, lengths=same)}
    alone = replace(step, attention_only=True)
    long = StepJob(config=SMALL, lengths=(LONGEST,), windows=16, checkpointing=True)
    memory = Bar("GB", lambda r: r["ours"].peak / GIGABYTE, ("ours",), 12.0, at_least=False)
    flat = at_most("x time per byte at 1,000", 1.1, "at 1,000", truediv, run="at 100,000")
    writing = {"at 1,000": WritingJob(position=NEAR), "at 100,000": WritingJob(position=FAR)}
    return (
        ("char-lm-step", steps, (times("dense", 1.6), per_token)),
        ("char-lm-attention", {"ours": alone, "dense": replace(alone, who="dense")}, (times("dense", 4.0),)),
        ("char-lm-long", {"ours": long}, (memory,)),
        ("char-lm-writing", writing, (flat,)),
    )
