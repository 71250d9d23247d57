"""LED, which reads documents and writes about them, as something to time: ours and transformers'."""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from longspan.engine.plan import _plan
from longspan.families.longformer.model import LongformerConfig
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.families.seq2seq.model import Seq2SeqConfig
from longspan.generation.config import GenerationConfig
from longspan.generation.generate import generate
from longspan.layout import Layout
from longspan.nn.heads import LMHead

if TYPE_CHECKING:
    from longspan.bench.jobs import Job

BEAMS = 4
POSITIONS = 1024
"Of the decoder."
Side = tuple[nn.Module, Callable[[], Iterable[Tensor]]]


class Reading:
    """How long an encoder's last call took, by hooks around it: the share of a summary that is reading."""

    def __init__(self, encoder: nn.Module) -> None:
        self.seconds = self._began = 0.0
        encoder.register_forward_pre_hook(self._begin)
        encoder.register_forward_hook(self._end)

    def __call__(self) -> float:
        return self.seconds

    def _begin(self, *_: object) -> None:
        self._began = time.perf_counter()

    def _end(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self._began


def ours(job: "Job", documents: list[Tensor]) -> Side:
    """What was read (N, C); with tokens to write, those of each text; in training the loss of the labels.

    The first token of each document is global. Attention drops nothing, as in the published LED.
    """
    own: dict[str, Any] = {
        "radius": job.radius,
        "token_types": 0,
        "position_offset": 0,
        "attention_dropout": 0.0,
    }
    encoder = LongformerConfig(**job.sizes, **own)
    like = {name: getattr(job, name) for name in ("layers", "heads", "feed_forward")}
    backbone = Seq2SeqConfig(encoder=encoder, **like, positions=POSITIONS).backbone()
    model = Seq2SeqLM(backbone, LMHead(backbone.word_embeddings))
    model.gradient_checkpointing = job.checkpointing
    ids, words = torch.cat(documents), torch.cat(job.labels)
    layout = Layout.packed(list(map(len, documents)), marked=[[0] for _ in documents])
    texts = Layout.packed(list(map(len, job.labels)))
    options = GenerationConfig(
        num_beams=BEAMS, max_new_tokens=job.written or None, min_new_tokens=job.written
    )

    def outputs() -> Iterable[Tensor]:
        _plan.cache_clear()  # other documents would need other plans
        if job.training:
            return [model.loss(ids, layout, words, texts)]
        if not job.written:
            return [model.backbone(ids, layout)]
        return [torch.tensor(best.tokens) for best, *_ in generate(model, ids, layout, options)]

    return model, outputs


def encoder_of(model: nn.Module) -> nn.Module:
    """The part that reads, of either side."""
    return model.encoder if isinstance(model, Seq2SeqLM) else model.get_submodule("led.encoder")


def transformers(job: "Job", inputs: dict[str, Tensor]) -> Side:
    """The same by LEDForConditionalGeneration, of padded documents and labels of one length."""
    from transformers import LEDConfig, LEDForConditionalGeneration, logging

    logging.set_verbosity_error()
    both = {"layers": job.layers, "attention_heads": job.heads, "ffn_dim": job.feed_forward}
    config = LEDConfig(
        vocab_size=job.vocab_size,
        d_model=job.width,
        **{f"{part}_{name}": size for part in ("encoder", "decoder") for name, size in both.items()},
        max_encoder_position_embeddings=job.positions,
        max_decoder_position_embeddings=POSITIONS,
        attention_window=2 * job.radius,
        dropout=0.1,
        attention_dropout=0.0,
        pad_token_id=job.sizes["pad_id"],
    )
    model = LEDForConditionalGeneration(config)
    if job.checkpointing:
        model.gradient_checkpointing_enable()
    words = torch.stack(job.labels)

    def outputs() -> Iterable[Tensor]:
        if job.training:
            return [model(**inputs, labels=words).loss]
        if not job.written:
            return [model.led.encoder(**inputs).last_hidden_state]
        limits = {"min_new_tokens": job.written, "max_new_tokens": job.written}
        texts = model.generate(**inputs, num_beams=BEAMS, do_sample=False, **limits)
        return list(texts[:, 1:])  # without what the decoder is started by

    return model, outputs
