"""LED, which reads documents and writes about them, as something to time: ours and transformers'."""

from collections.abc import Callable, Iterable
from typing import Any

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

BEAMS = 4
POSITIONS = 1024
"Of the decoder."
Side = tuple[nn.Module, Callable[[], Iterable[Tensor]]]


def ours(
    documents: list[Tensor],
    sizes: dict[str, Any],
    *,
    labels: list[Tensor],
    written: int,
    training: bool,
    checkpointing: bool,
) -> Side:
    """What was read (N, C); with `written`, so many tokens of each text; in training the loss of `labels`.

    The first token of each document is global. Attention drops nothing, as in the published LED.
    """
    encoder = LongformerConfig(**sizes, token_types=0, position_offset=0, attention_dropout=0.0)
    like = {name: sizes[name] for name in ("layers", "heads", "feed_forward")}
    backbone = Seq2SeqConfig(encoder=encoder, **like, positions=POSITIONS).backbone()
    model = Seq2SeqLM(backbone, LMHead(backbone.word_embeddings))
    model.backbone.encoder.gradient_checkpointing = checkpointing
    ids, words = torch.cat(documents), torch.cat(labels)
    layout = Layout.packed(list(map(len, documents)), marked=[[0] for _ in documents])
    texts = Layout.packed(list(map(len, labels)))
    options = GenerationConfig(num_beams=BEAMS, max_new_tokens=written or None, min_new_tokens=written)

    def outputs() -> Iterable[Tensor]:
        _plan.cache_clear()  # other documents would need other plans
        if training:
            return [model.loss(ids, layout, words, texts)]
        if not written:
            return [model.backbone(ids, layout)]
        return [torch.tensor(best.tokens) for best, *_ in generate(model, ids, layout, options)]

    return model, outputs


def transformers(
    inputs: dict[str, Tensor],
    sizes: dict[str, Any],
    *,
    labels: list[Tensor],
    written: int,
    training: bool,
    checkpointing: bool,
) -> Side:
    """The same by LEDForConditionalGeneration, of padded documents and labels of one length."""
    from transformers import LEDConfig, LEDForConditionalGeneration, logging

    logging.set_verbosity_error()
    both = {"layers": sizes["layers"], "attention_heads": sizes["heads"], "ffn_dim": sizes["feed_forward"]}
    config = LEDConfig(
        vocab_size=sizes["vocab_size"],
        d_model=sizes["width"],
        **{f"{part}_{name}": size for part in ("encoder", "decoder") for name, size in both.items()},
        max_encoder_position_embeddings=sizes["positions"],
        max_decoder_position_embeddings=POSITIONS,
        attention_window=2 * sizes["radius"],
        dropout=0.1,
        attention_dropout=0.0,
        pad_token_id=sizes["pad_id"],
    )
    model = LEDForConditionalGeneration(config)
    if checkpointing:
        model.gradient_checkpointing_enable()
    words = torch.stack(labels)

    def outputs() -> Iterable[Tensor]:
        if training:
            return [model(**inputs, labels=words).loss]
        if not written:
            return [model.led.encoder(**inputs).last_hidden_state]
        texts = model.generate(
            **inputs, num_beams=BEAMS, do_sample=False, min_new_tokens=written, max_new_tokens=written
        )
        return list(texts[:, 1:])  # without what the decoder is started by

    return model, outputs
