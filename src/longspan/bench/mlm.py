"""A whole step of pretraining, masks and optimizer included: our loop, and a plain one of transformers."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from longspan.bench.bars import Bar, of_peak, times
from longspan.bench.jobs import KEEP_PAGES
from longspan.bench.measure import Round, Run
from longspan.bench.peers import need_transformers
from longspan.corpus.spelling import Spelling
from longspan.engine.plan import _plan
from longspan.families.config import EncoderConfig
from longspan.families.registry import family_of, presets
from longspan.nn.chunked_cross_entropy import IGNORE_INDEX
from longspan.pipeline.packing import Batch
from longspan.recipes.frozen import unreached
from longspan.recipes.masking import Key, Masking
from longspan.recipes.mlm import masked_loss, packed
from longspan.shapes import IntArray
from longspan.tasks.registry import build
from longspan.training.config import TrainingConfig
from longspan.training.order import Cursor, Order
from longspan.training.ranks import Ranks
from longspan.training.step import Stepper
from longspan.training.weights import Weights

PEER, KEPT = "transformers", " keeping pages"
SPECIAL, MASK = 5, 4
"""Ids below the first are special, and one of them is the mask."""


@dataclass(frozen=True, kw_only=True)
class MlmJob:
    """A masked language model with random weights over one random document, float32, dropout as it has it."""

    preset: str = "longformer-base"
    who: str = "ours"
    lengths: tuple[int, ...] = (4096,)
    rate: float = 0.15
    keep_pages: bool = False
    warm_up: bool = True
    options: dict[str, Any] = field(default_factory=dict)
    "Fields of the config that differ from the preset's."
    training: bool = True

    @property
    def family(self) -> str:
        """What it is a model of."""
        return self.preset

    @property
    def layers(self) -> int:
        """Of the whole model."""
        return self.config.layers

    @property
    def environment(self) -> dict[str, str]:
        """What its process needs besides the environment of this one."""
        return KEEP_PAGES if self.keep_pages else {}

    @property
    def config(self) -> EncoderConfig:
        """The preset."""
        config: EncoderConfig = replace(presets()[self.preset].encoder, **self.options)
        return config

    @property
    def data(self) -> "RandomExamples":
        """Random documents."""
        return RandomExamples(self.lengths, self.config.vocab_size, self.rate)

    def __call__(self) -> Run:
        torch.manual_seed(0)
        step, outside = (_ours if self.who == "ours" else _theirs)(self)
        return Run(step, grad=True, reading=outside)


@dataclass(frozen=True)
class RandomExamples:
    """Random tokens with masks: a source of training data that also says how long making a batch took."""

    sizes: tuple[int, ...]
    vocabulary: int
    rate: float
    spent: list[float] = field(default_factory=lambda: [0.0])

    @property
    def lengths(self) -> IntArray:
        """The tokens of each example."""
        return np.array(self.sizes)

    def batch(self, examples: IntArray, epoch: int) -> Batch:
        """Examples with the masks of an epoch."""
        began = time.perf_counter()
        special = np.arange(self.vocabulary) < SPECIAL
        nothing, no = np.zeros(self.vocabulary, int), np.zeros(self.vocabulary, bool)
        spelling = Spelling(special, False, no, no, no, nothing, nothing, nothing, no, no)
        masking, seen = Masking(rate=self.rate), []
        for example in examples.tolist():
            draw = np.random.default_rng(example)
            ids = draw.integers(SPECIAL, self.vocabulary, self.sizes[example])
            seen.append(masking.apply(ids, spelling, MASK, Key(0, epoch, example)))
        made = packed(examples.tolist(), seen, [None] * len(seen))
        self.spent[0] = time.perf_counter() - began
        return made


Step = tuple[Callable[[], None], Callable[[], float]]
"""An update of the weights, and the seconds of the last one outside of forward and backward passes."""


def _ours(job: MlmJob) -> Step:
    """What a run does in each step, without its log and checkpoints."""
    model, data = build(job.config, "fill"), job.data
    for parameter in unreached(model, replace(data, sizes=(16,)).batch(np.arange(1), 0), masked_loss):
        parameter.requires_grad_(False)
    config = TrainingConfig(steps=1, batch_tokens=sum(job.lengths))
    weights, order = Weights(model.train(), config), Order(data.lengths, batch_tokens=config.batch_tokens)
    stepper, outside, epoch = Stepper(model, data, masked_loss, Ranks(), weights, 0), [0.0], [0]

    def step() -> None:
        _plan.cache_clear()  # other documents would need other plans
        epoch[0] += 1
        got = stepper.gradients(epoch[0], order.step(Cursor(epoch[0], 0)))
        began = time.perf_counter()
        norm = weights.norm() / got.weight
        weights.update(min(1.0, 1.0 / norm) / got.weight, 1.0)
        outside[0] = time.perf_counter() - began + data.spent[0]

    return step, lambda: outside[0]


def _theirs(job: MlmJob) -> Step:
    """The loop that tutorials have, with torch's fused AdamW."""
    need_transformers()
    import transformers

    transformers.logging.set_verbosity_error()
    config, family, data = job.config, family_of(job.config, {}), job.data
    stated = transformers.AutoConfig.for_model(family.model_type, **family.write(config))
    model: nn.Module = transformers.AutoModelForMaskedLM.from_config(stated).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5, weight_decay=0.01, fused=True)
    outside, epoch = [0.0], [0]

    def step() -> None:
        epoch[0] += 1
        batch = data.batch(np.arange(len(data.sizes)), epoch[0])
        ids, labels = _padded(batch, config.pad_id)
        model(input_ids=ids, labels=labels).loss.backward()
        began = time.perf_counter()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        outside[0] = time.perf_counter() - began + data.spent[0]

    return step, lambda: outside[0]


def _padded(batch: Batch, pad: int) -> tuple[Tensor, Tensor]:
    assert isinstance(batch.labels, Tensor)
    lengths = batch.layout.lengths.tolist()
    ids, labels = (
        nn.utils.rnn.pad_sequence(list(column.split(lengths)), batch_first=True, padding_value=fill)
        for column, fill in ((batch.ids, pad), (batch.labels, IGNORE_INDEX))
    )
    return ids, labels


Parts = tuple[str, dict[str, Any], tuple[Bar, ...]]
"""Name, jobs and bars of a case."""


def cases() -> Iterator[Parts]:
    """A step of each model, and NAME-kept: against transformers keeping pages, for memory's sake apart."""
    for preset, rate, bar, memory in (
        ("longformer-base", 0.15, 3.0, 0.4),
        ("modernbert-base", 0.3, 1.5, None),
    ):
        ours = MlmJob(preset=preset, rate=rate)
        theirs, name = replace(ours, who=PEER), f"mlm-{preset.removesuffix('-base')}"
        outside = Bar("of a step outside forward and backward", _share, ("ours",), 0.05, at_least=False)
        yield name, {"ours": ours, PEER: theirs}, (times(PEER, bar), of_peak(PEER, memory), outside)
        kept = {"ours": ours, PEER + KEPT: replace(theirs, keep_pages=True)}
        yield f"{name}-kept", kept, (times(PEER + KEPT, bar),)


def _share(turns: Round) -> float:
    return turns["ours"].reading / turns["ours"].seconds
