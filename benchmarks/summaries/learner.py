"""A small LED that learns from nothing: what it is, what it is shown, and how it takes a step."""

import random
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from benchmarks.summaries.papers import END, PAD, START, Pair
from torch import Tensor

from longspan.families.longformer.model import LongformerConfig
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.families.seq2seq.model import Seq2SeqConfig
from longspan.layout import Layout
from longspan.tasks.registry import build

RATE, WARM, EVERY = 1e-3, 150, 100
"""The learning rate, the steps until it is reached, and those between two lines of the log."""
BIAS = 30.0
"""How much faster biases by distance learn, which have to become large."""
Draw = Callable[[], Sequence[Pair]]


class Stage(NamedTuple):
    """A part of the pretext: copy `spans` stretches of `span` tokens in order, out of `crop` tokens."""

    crop: int
    spans: int
    span: int
    batch: int
    steps: int


PRETEXT = (Stage(96, 2, 32, 8, 1400), Stage(256, 3, 32, 8, 500), Stage(768, 4, 40, 4, 200))


def led(vocabulary: int, longest: int, written: int, *, width: int, heads: int) -> Seq2SeqLM:
    """Two layers that read in windows of 64 tokens to each side and one global token, two that write."""
    reading = LongformerConfig(
        vocab_size=vocabulary,
        width=width,
        layers=2,
        heads=heads,
        feed_forward=4 * width,
        positions=longest,
        position_offset=0,
        token_types=0,
        buckets=32,
        radius=64,
        dropout=0.0,
        attention_dropout=0.0,
        pad_id=PAD,
    )
    writing = Seq2SeqConfig(
        encoder=reading,
        layers=2,
        heads=heads,
        feed_forward=4 * width,
        positions=written,
        start_id=START,
        bos_id=START,
        eos_id=END,
    )
    return build(writing, "summarize")


def packed(pairs: Sequence[Pair]) -> tuple[Tensor, Layout, Tensor, Layout]:
    """Pairs as `loss` takes them: documents end to end with their first token global, and the texts."""
    documents = Layout.packed([len(one.document) for one in pairs], marked=[[0]] * len(pairs))
    texts = Layout.packed([len(one.summary) for one in pairs])
    ids, labels = (torch.tensor([token for one in pairs for token in one[part]]) for part in (0, 1))
    return ids, documents, labels, texts


def drills(documents: Sequence[Sequence[int]], stage: Stage, draw: random.Random) -> list[Pair]:
    """A batch of the pretext."""
    return [_drill(draw.choice(documents), stage, draw) for _ in range(stage.batch)]


def _drill(document: Sequence[int], stage: Stage, draw: random.Random) -> Pair:
    """A stretch of a paper, and stretches of it in their order, the first from its beginning."""
    begin = draw.randrange(1, max(2, len(document) - stage.crop + 2))
    crop = list(document[begin : begin + stage.crop - 1])
    starts = sorted(draw.randrange(max(1, len(crop) - 8)) for _ in range(stage.spans - 1))
    text = [token for start in (0, *starts) for token in crop[start : start + stage.span]]
    return Pair([START, *crop], [*text, END])


class Learner:
    """A model, its optimizer and its log."""

    def __init__(self, model: Seq2SeqLM) -> None:
        self.model, self.taken, self.began = model, 0, time.perf_counter()
        biases = [p for name, p in model.named_parameters() if "relative_bias" in name]
        others = [p for name, p in model.named_parameters() if "relative_bias" not in name]
        groups = [{"params": others, "faster": 1.0}, {"params": biases, "faster": BIAS, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.98), weight_decay=0.01)

    def learn(
        self, name: str, steps: int, draw: Draw, *, cooling: bool = False, tell: Callable[[], str] = str
    ) -> None:
        """Take steps on what is drawn; with `cooling` the rate falls towards 0; `tell` ends log lines."""
        losses = []
        for step in range(steps):
            fall = 1 - 0.95 * step / steps if cooling else 1.0
            rate = RATE * min(1.0, (self.taken + 1) / WARM) * fall
            for group in self.optimizer.param_groups:
                group["lr"] = rate * group["faster"]
            losses.append(self._step(packed(draw())))
            if step % EVERY == EVERY - 1 or step == steps - 1:
                spent = time.perf_counter() - self.began
                loss = np.mean(losses[-EVERY:])
                print(f"{name:<12} {step + 1:>5} {loss:7.3f} {spent:7.0f} s  {tell()}", flush=True)

    def _step(self, given: tuple[Tensor, Layout, Tensor, Layout]) -> float:
        self.model.train()
        loss = self.model.loss(*given)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.taken += 1
        return float(loss)


@torch.no_grad()
def losses(model: Seq2SeqLM, pairs: Sequence[Pair]) -> list[float]:
    """Minus the logarithm of the probability of each pair's summary, all of its tokens together."""
    model.eval()
    return [model.loss(*packed([one])).item() * len(one.summary) for one in pairs]
