"""Generation as transformers has it: padded batches in, padded sequences of tokens out."""

from typing import Any

import torch
from torch import Tensor

from longspan.families.padded import PaddedBatch
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.generation.config import GenerationConfig
from longspan.generation.generate import generate


def generate_padded(
    model: Seq2SeqLM,
    input_ids: Tensor,
    attention_mask: Tensor | None = None,
    global_attention_mask: Tensor | None = None,
    generation_config: GenerationConfig | None = None,
    *,
    generator: torch.Generator | None = None,
    **options: Any,
) -> Tensor:
    """The texts about each document (B * num_return_sequences, T): start token, text, padding."""
    config = generation_config or GenerationConfig()
    config = config.but(**options) if options else config
    batch = PaddedBatch.of(input_ids, attention_mask, global_attention_mask)
    ids = batch.pack("input_ids", input_ids)
    found = generate(model, ids, batch.layout, config, generator=generator)
    sizes = model.backbone.config
    start = sizes.start_id if config.decoder_start_token_id is None else config.decoder_start_token_id
    texts = [ids.new_tensor([start, *text.tokens]) for document in found for text in document]
    return torch.nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=sizes.encoder.pad_id)
