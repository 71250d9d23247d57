"""Modern encoders by their presets: ours, transformers', and transformers' with our attention inside."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from operator import truediv
from typing import Any

import torch
from torch import Tensor, nn

from longspan.bench.bars import Bar, at_most, of_peak, of_sgemm, times
from longspan.bench.cases import DOCUMENTS
from longspan.bench.jobs import KEEP_PAGES
from longspan.bench.measure import Run
from longspan.bench.peers import need_transformers
from longspan.engine.plan import _plan
from longspan.families.config import EncoderConfig
from longspan.families.registry import family_of, presets
from longspan.inspect.cost import attention_costs
from longspan.inspect.dry_run import dry_run
from longspan.layout import Layout
from longspan.nn.quantized import quantize
from longspan.nn.rotary import rotate, rotations
from longspan.pipeline.packing import pack

PEER, INSIDE, KEPT = "transformers", "longspan in transformers", " keeping pages"


@dataclass(frozen=True, kw_only=True)
class ModernJob:
    """An encoder with random weights over some documents, float32; calling it builds model and input."""

    preset: str
    who: str = "ours"
    """"ours", "transformers" (its sdpa), or "longspan in transformers" (attn_implementation)."""
    lengths: tuple[int, ...] = (4096,)
    batch: int = 8
    "Documents that transformers pads to one length; ours are packed by a token budget."
    layers: int | None = None
    "Only so many of the preset's."
    training: bool = False
    int8: bool = False
    keep_pages: bool = False
    warm_up: bool = True
    options: dict[str, Any] = field(default_factory=dict)
    "Fields of the config that differ from the preset's."

    @property
    def family(self) -> str:
        """What is run."""
        return self.preset

    @property
    def environment(self) -> dict[str, str]:
        """What its process needs besides the environment of this one."""
        return KEEP_PAGES if self.keep_pages else {}

    @property
    def config(self) -> EncoderConfig:
        """The preset, perhaps with fewer layers."""
        fewer: dict[str, Any] = {} if self.layers is None else {"layers": self.layers}
        config: EncoderConfig = replace(presets()[self.preset].encoder, **fewer, **self.options)
        return config

    @property
    def useful_flops(self) -> int:
        """FLOPs of the linear layers and of the pairs that may attend, forward."""
        config, layout = self.config, Layout.packed(self.lengths)
        work = dry_run(config, layout)
        costs = attention_costs(config.attention(layout), layout, config, work)
        pairs = sum(len(cost.layers) * cost.useful for cost in costs)
        return work.linear_flops + 4 * pairs * getattr(config, "head_size", config.width // config.heads)

    def __call__(self) -> Run:
        torch.manual_seed(0)
        generator = torch.Generator().manual_seed(0)
        documents = [torch.randint(5, 5000, (n,), generator=generator) for n in self.lengths]
        model, outputs = (_ours if self.who == "ours" else _theirs)(self, documents)
        model.train(self.training)

        def call() -> None:
            model.zero_grad()
            for output in outputs():
                if self.training:
                    output.backward(torch.ones_like(output))

        return Run(call, grad=True) if self.training else Run(call, amount=self.useful_flops)


@dataclass(frozen=True, kw_only=True)
class RotationJob:
    """What rotary positions add to six layers of ModernBERT-base: turning their queries and keys."""

    who: str = "ours"
    family: str = "modernbert-base"
    lengths: tuple[int, ...] = (4096,)
    layers: int = 6
    training: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    warm_up: bool = True

    def __call__(self) -> Run:
        config: Any = presets()[self.family].encoder
        layout = Layout.packed(self.lengths)
        turn = rotations(config.rope, config.head_size, layout)
        qkv = [torch.randn(layout.size, 3 * config.width) for _ in range(self.layers)]
        return Run(lambda: [rotate(x, 2 * config.heads, turn) for x in qkv])


Outputs = Callable[[], Iterable[Tensor]]


def _ours(job: ModernJob, documents: list[Tensor]) -> tuple[nn.Module, Outputs]:
    model = job.config.backbone()
    if job.int8:
        quantize(model)

    def outputs() -> Iterator[Tensor]:
        _plan.cache_clear()  # other documents would need other plans
        for batch in pack(documents):
            yield model(batch.ids, batch.layout)

    return model, outputs


def _theirs(job: ModernJob, documents: list[Tensor]) -> tuple[nn.Module, Outputs]:
    need_transformers()
    import transformers

    transformers.logging.set_verbosity_error()
    if job.who == INSIDE:
        import longspan.hf  # noqa: F401  (registers the attention)
    config, family = job.config, family_of(job.config, {})
    stated = family.write(config) | {"attention_dropout": 0.0}
    how = "longspan" if job.who == INSIDE else "sdpa"
    stated = transformers.AutoConfig.for_model(family.model_type, **stated)
    model: nn.Module = transformers.AutoModel.from_config(stated, attn_implementation=how)
    groups = [documents[i : i + job.batch] for i in range(0, len(documents), job.batch)]
    batches = []
    for group in groups:
        ids = nn.utils.rnn.pad_sequence(group, batch_first=True, padding_value=config.pad_id)
        ones = nn.utils.rnn.pad_sequence([torch.ones_like(one) for one in group], batch_first=True)
        alone = len({len(one) for one in group}) == 1
        batches.append({"input_ids": ids} | ({} if alone else {"attention_mask": ones}))
    return model, lambda: (model(**batch).last_hidden_state for batch in batches)


Parts = tuple[str, dict[str, Any], tuple[Bar, ...]]
"""Name, jobs and bars of a case."""
SHARE = replace(of_sgemm(0.80), measure="useful FLOPs at sgemm speed, of our time")
OTHERS = ("nomic-bert-base", "eurobert-210m", "gte-base-en-v1.5", "bge-m3")
"""Presets whose share of sgemm has a target."""


def cases() -> Iterator[Parts]:
    """All cases."""
    base = ModernJob(preset="modernbert-base")
    for n, bar, inside in ((4096, 1.6, 1.35), (8192, 1.95, 1.6)):
        yield _one_document(f"modernbert-{n}", replace(base, lengths=(n,)), bar, inside)
    yield _documents(replace(base, lengths=DOCUMENTS, layers=3, warm_up=False))
    ours = replace(base, training=True, warm_up=False)
    jobs = {"ours": ours, INSIDE: replace(ours, who=INSIDE)} | _both(PEER, replace(ours, who=PEER))
    bars = (
        times(PEER, 1.5, run=INSIDE),
        times(PEER + KEPT, None, run=INSIDE),
        times(PEER, None),
        of_peak(PEER, None),
    )
    yield "modernbert-training", jobs, bars
    for preset in OTHERS:
        yield _other(preset)
    share = at_most("rotation, of a layer's time", 0.03, "ours", truediv, run="rotation")
    yield "modernbert-rotary", {"ours": replace(base, layers=6), "rotation": RotationJob()}, (share,)


def _one_document(name: str, ours: ModernJob, bar: float, inside: float) -> Parts:
    jobs = {"ours": ours, "int8": replace(ours, int8=True), INSIDE: replace(ours, who=INSIDE)}
    jobs |= _both(PEER, replace(ours, who=PEER))
    int8 = times("ours", 1.35, run="int8", measure="int8, x faster than float32")
    speed = (times(PEER, bar), times(PEER + KEPT, None), SHARE, of_peak(PEER, 0.2), int8)
    return name, jobs, (*speed, times(PEER, inside, run=INSIDE), times(PEER + KEPT, None, run=INSIDE))


def _documents(ours: ModernJob) -> Parts:
    """Three layers, one of them full: the rest would repeat them."""
    by_length = replace(ours, who=PEER, lengths=tuple(sorted(ours.lengths)))
    given, ordered = f"{PEER} in given order", f"{PEER} sorted by length"
    jobs = {"ours": ours} | _both(given, replace(ours, who=PEER)) | _both(ordered, by_length)
    kept = (times(name + KEPT, None) for name in (given, ordered))
    return "modernbert-documents", jobs, (times(given, 3.5), times(ordered, 2.0), *kept)


def _other(preset: str) -> Parts:
    """A few layers at n 4,096, and at the lengths where we must not be slower."""
    ours = ModernJob(preset=preset, layers=4)
    jobs, bars = {"ours": ours} | _both(PEER, replace(ours, who=PEER)), [SHARE]
    bars += [times(PEER, 1.0), times(PEER + KEPT, None)]
    for n in (64, 512):
        mine, yours = f"n {n}", f"{PEER}, n {n}"
        jobs |= {mine: replace(ours, lengths=(n,))} | _both(yours, replace(ours, who=PEER, lengths=(n,)))
        bars += [times(yours, 1.0, run=mine), times(yours + KEPT, None, run=mine)]
    return preset, jobs, tuple(bars)


def _both(name: str, job: ModernJob) -> dict[str, ModernJob]:
    """A peer under both allocators."""
    return {name: job, name + KEPT: replace(job, keep_pages=True)}
