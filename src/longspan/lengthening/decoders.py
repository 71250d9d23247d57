"""What becomes of a decoder when the encoder before it is made long."""

from dataclasses import replace

import torch
from torch import Tensor

from longspan.families.config import EncoderConfig
from longspan.families.seq2seq.lm import Seq2SeqTaskModel
from longspan.families.seq2seq.model import Seq2Seq, Seq2SeqConfig
from longspan.families.task_model import TaskModel
from longspan.generation.settings import OLD_NAMES, OPTIONS, OURS, UNSUPPORTED
from longspan.lengthening.positions import stretched

GENERATION = tuple(
    sorted((OPTIONS - {OURS}) | UNSUPPORTED.keys() | {"prefix", "task_specific_params", *OLD_NAMES})
)
"""Fields of config.json about generation, which mean the same to every family."""


def with_decoder(source: TaskModel, encoder: EncoderConfig) -> Seq2SeqConfig:
    """The config of the source with a long encoder; a decoder that reads documents becomes as long."""
    old = config_of(source)
    rows = encoder.longest if isinstance(source, Seq2SeqTaskModel) else old.positions
    if encoder.decoder_offset is not None:
        offset = encoder.decoder_offset
        encoder, old = replace(encoder, position_offset=offset), replace(old, position_offset=offset)
    return replace(old, encoder=encoder, positions=max(rows, old.positions))


def decoder_positions(
    source: TaskModel, new: Seq2SeqConfig, method: str, period: int | None
) -> dict[str, Tensor]:
    """The decoder's position table, for the new config."""
    old, name = config_of(source), "backbone.decoder.embeddings.positions.weight"
    table = source.get_parameter(name).detach()
    rows = table[old.position_offset :]
    if new.positions > old.positions:
        rows = stretched(rows, new.positions, method, period=period, std=old.encoder.init_std)
    return {name: torch.cat([table[: new.position_offset], rows])}


def config_of(source: TaskModel) -> Seq2SeqConfig:
    """The config of a model with a decoder."""
    assert isinstance(source.backbone, Seq2Seq)
    return source.backbone.config
