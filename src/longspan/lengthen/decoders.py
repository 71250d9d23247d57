"""What becomes of a decoder when the encoder before it is made long."""

from dataclasses import replace

import torch
from torch import Tensor

from longspan.checkpoints.positions import stretched
from longspan.models.config import EncoderConfig
from longspan.models.longformer import LongformerConfig
from longspan.models.seq2seq import Seq2SeqConfig
from longspan.models.task import TaskModel

GENERATION = (
    *("num_beams", "max_length", "min_length", "length_penalty", "no_repeat_ngram_size", "early_stopping"),
    *("forced_bos_token_id", "forced_eos_token_id", "bad_words_ids", "decoder_start_token_id", "prefix"),
    "task_specific_params",
)
"""Fields of config.json that say how texts are written: they mean the same to every family."""


def with_decoder(source: TaskModel, encoder: EncoderConfig) -> Seq2SeqConfig:
    """The config of the source with a long encoder; a decoder that reads documents becomes as long."""
    old = source.body.config
    assert isinstance(old, Seq2SeqConfig)
    rows = encoder.longest if source.task in ("classify", "answer") else old.positions
    if isinstance(encoder, LongformerConfig):  # LED's tables have no rows before position 0, BART's have two
        encoder, old = replace(encoder, position_offset=0), replace(old, position_offset=0)
    return replace(old, encoder=encoder, positions=max(rows, old.positions))


def decoder_positions(
    source: TaskModel, new: Seq2SeqConfig, way: str, period: int | None
) -> dict[str, Tensor]:
    """The decoder's table of positions, for the new config."""
    old, name = source.body.config, "body.decoder.embeddings.positions.weight"
    assert isinstance(old, Seq2SeqConfig)
    table = source.get_parameter(name).detach()
    rows = table[old.position_offset :]
    if new.positions > old.positions:
        rows = stretched(rows, new.positions, way, period=period, std=old.encoder.init_std)
    return {name: torch.cat([table[: new.position_offset], rows])}
