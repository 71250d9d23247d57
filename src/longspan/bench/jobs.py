"""A job: whole models as something to time, described by plain data that crosses into a worker process."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from longspan.bench import led
from longspan.bench.dense_etc import DenseEtc
from longspan.bench.measure import Run
from longspan.bench.peers import need_transformers
from longspan.engine.plan import _plan
from longspan.families.etc.model import Etc, etc_base
from longspan.families.registry import FAMILIES
from longspan.hf import accelerate
from longspan.hf.serving import once
from longspan.layout import Layout
from longspan.nn.quantized import quantize
from longspan.pipeline.packing import pack

PAD, FIRST_ID = 1, 5  # ids below 5 are special in both families
SEED = 0
CONFIGS = {family.config.family.lower(): family.config for family in FAMILIES}
SIZES = ("vocab_size", "width", "layers", "heads", "feed_forward")
KEEP_PAGES = {
    "MALLOC_TRIM_THRESHOLD_": str(2**36),
    "MALLOC_MMAP_THRESHOLD_": str(2**36),
    "MALLOC_TOP_PAD_": str(2**28),
}
"""Settings by which the allocator of glibc gives no page back, so that none has to be cleared twice."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A base model with random weights over some documents, float32; calling it builds model and input."""

    who: str = "ours"
    """"ours" or "transformers"; "accelerated", the same with our attention inside, and "accelerated with
    activations" with these too; for ETC "dense" or "fused", plain torch with or without its fused kernel."""
    family: str = "longformer"
    """Its name in lower case. The first token of each document is global, but not in "bigbird" and "etc"; LED
    has as many layers that write as layers that read."""
    options: dict[str, Any] = field(default_factory=dict)
    "Fields of our config besides those below."
    lengths: tuple[int, ...] = (4096,)
    "Tokens of each document."
    batch: int = 8
    "Documents that transformers pads to one length; ours are packed by a token budget."
    training: bool = False
    "Forward and backward with dropout, instead of forward in evaluation without gradients."
    written: int = 0
    "Tokens that LED writes about each document by beam search, or in training learns to; 0: it only reads."
    checkpointing: bool = False
    int8: bool = False
    "Ours with int8 linear layers."
    globals: int = 256
    "Global tokens of ETC."
    keep_pages: bool = False
    "Run with KEEP_PAGES in the environment."
    warm_up: bool = True
    "Run once before the first turn."
    layers: int = 12
    width: int = 768
    heads: int = 12
    feed_forward: int = 3072
    vocab_size: int = 50265
    radius: int = 256
    block: int = 64
    positions: int = 4096

    @property
    def environment(self) -> dict[str, str]:
        """What its process needs besides the environment of this one."""
        return KEEP_PAGES if self.keep_pages else {}

    @property
    def linear_flops(self) -> int:
        """FLOPs of the linear layers that the documents need in a Longformer or BigBird, forward.

        Every row: query, key, value, output and the two feed-forward layers. A global row: no local query,
        but a global one and its way through the key projection, and its mean's through the value projection.

        >>> Job(family="bigbird").linear_flops / 1e9
        695.784701952
        """
        square = self.width**2
        row = 4 * square + 2 * self.width * self.feed_forward
        marked = 2 * square * len(self.lengths) if self.family != "bigbird" else 0
        return 2 * self.layers * (row * sum(self.lengths) + marked)

    def __call__(self) -> Run:
        model, outputs = SIDES[self.who](self, self.documents)
        model.train(self.training)
        upstream = torch.randn(sum(self.lengths), self.width)

        def call() -> None:
            model.zero_grad()
            for output in outputs():
                if self.training:
                    output.backward(upstream.view(output.shape) if output.dim() else None)  # None: of a loss

        if self.training:
            return Run(call, grad=True)
        if self.written:
            return Run(call, reading=led.Reading(led.encoder_of(model)))
        return Run(call, amount=self.linear_flops)

    @property
    def sizes(self) -> dict[str, Any]:
        """Those that all our configs have but ETC's."""
        sizes = {name: getattr(self, name) for name in SIZES}
        return sizes | {"positions": self.positions, "pad_id": PAD}

    @property
    def documents(self) -> list[Tensor]:
        """Random tokens."""
        return self._random(self.lengths)

    @property
    def labels(self) -> list[Tensor]:
        """What LED learns to write about each document."""
        return self._random((self.written,) * len(self.lengths))

    def _random(self, lengths: tuple[int, ...]) -> list[Tensor]:
        generator = torch.Generator().manual_seed(SEED)
        return [torch.randint(FIRST_ID, self.vocab_size, (n,), generator=generator) for n in lengths]


Outputs = Callable[[], Iterable[Tensor]]


def _ours(job: Job, documents: list[Tensor]) -> tuple[nn.Module, Outputs]:
    """Documents packed end to end; packing and making the plans belong to every turn."""
    if job.family == "led":
        return led.ours(job, documents)
    if job.family == "etc":
        model, marked = _etc(job), None
    elif job.family == "bigbird":
        model, marked = CONFIGS[job.family](**job.sizes, block=job.block).backbone(), None
    else:
        model = CONFIGS[job.family](**job.sizes, radius=job.radius, **job.options).backbone()
        marked = [[0] for _ in documents]
    if job.int8:
        quantize(model)
    model.gradient_checkpointing = job.checkpointing

    def outputs() -> Iterable[Tensor]:
        _plan.cache_clear()  # other documents would need other plans
        for batch in pack(documents, marked=marked):
            yield model(batch.ids, batch.layout)

    return model, outputs


def _etc(job: Job) -> Etc:
    sizes = {name: getattr(job, name) for name in (*SIZES, "radius")}
    return Etc(etc_base(**sizes, block=-(-max(job.lengths) // job.globals), most_globals=job.globals))


def _dense(job: Job, documents: list[Tensor]) -> tuple[nn.Module, Outputs]:
    """One document after the other; making masks and labels belongs to every turn."""
    model = DenseEtc(_etc(job), fused=job.who == "fused")
    return model, lambda: (model(ids, Layout.packed([len(ids)])) for ids in documents)


def _transformers(job: Job, documents: list[Tensor]) -> tuple[nn.Module, Outputs]:
    """Batches of documents in the given order, each padded to its longest; padding is not timed."""
    need_transformers()
    if job.family == "led":
        return led.transformers(job, _padded(documents, job.family))
    import transformers

    transformers.logging.set_verbosity_error()
    sizes: dict[str, Any] = {
        "vocab_size": job.vocab_size,
        "hidden_size": job.width,
        "num_hidden_layers": job.layers,
        "num_attention_heads": job.heads,
        "intermediate_size": job.feed_forward,
        "pad_token_id": PAD,
    }
    if job.family == "longformer":
        sizes |= {"max_position_embeddings": job.positions + 2, "type_vocab_size": 1, "layer_norm_eps": 1e-5}
        config = transformers.LongformerConfig(**sizes, attention_window=2 * job.radius)
        model: nn.Module = transformers.LongformerModel(config, add_pooling_layer=False)
    else:
        sizes |= {"max_position_embeddings": job.positions, "block_size": job.block}
        model = transformers.BigBirdModel(transformers.BigBirdConfig(**sizes), add_pooling_layer=False)
    groups = [documents[i : i + job.batch] for i in range(0, len(documents), job.batch)]
    batches = [_padded(group, job.family) for group in groups]
    return model, lambda: (model(**batch).last_hidden_state for batch in batches)


def _accelerated(job: Job, documents: list[Tensor]) -> tuple[nn.Module, Outputs]:
    """The same with Longspan's attention inside; making the plans belongs to every turn."""
    model, outputs = _transformers(job, documents)

    def fresh() -> Iterable[Tensor]:
        for cache in (_plan, once):
            cache.cache_clear()
        return outputs()

    return accelerate(model, activations=job.who.endswith("activations")), fresh


SIDES = {
    "ours": _ours,
    "transformers": _transformers,
    "accelerated": _accelerated,
    "accelerated with activations": _accelerated,
    "dense": _dense,
    "fused": _dense,
}


def _padded(documents: list[Tensor], family: str) -> dict[str, Tensor]:
    ids = nn.utils.rnn.pad_sequence(documents, batch_first=True, padding_value=PAD)
    inputs = {"input_ids": ids, "attention_mask": (ids != PAD).long()}
    if family in ("longformer", "led"):
        inputs["global_attention_mask"] = torch.zeros_like(ids)
        inputs["global_attention_mask"][:, 0] = 1
    return inputs
