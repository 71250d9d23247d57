"""BigBird-Pegasus's files: norms before the blocks, no biases in attention, scaled words."""

from dataclasses import replace
from typing import Any

from longspan.checkpoints.families.bart import (
    BART,
    DECODER,
    DEFAULTS,
    WORDS,
    length,
    read_fields,
    side,
    unlike_bart,
    write_fields,
)
from longspan.checkpoints.families.bigbird import ATTENTION
from longspan.checkpoints.schema import Raw, flag, text
from longspan.errors import bad, whole
from longspan.models.bigbird import BigBirdConfig
from longspan.models.seq2seq import Seq2SeqConfig

_ATTENTION = "self_attn.self"
USUAL = DEFAULTS | {
    "vocab_size": 96103,
    "encoder_layers": 16,
    "decoder_layers": 16,
    "activation_function": "gelu_new",
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 1,
}


def read(raw: Raw) -> Seq2SeqConfig:
    """Our config of BigBird-Pegasus's."""
    given = {"attention_type": "block_sparse", "block_size": 64, "num_random_blocks": 3, **raw}
    kind = text(given, "attention_type")
    if kind not in ATTENTION:
        raise bad("attention_type", f"one of {', '.join(ATTENTION)}", kind)
    rows, bias = length(raw, "max_position_embeddings", 4096), flag(raw, "use_bias", False)
    encoder = {
        "positions": rows,
        "norm_first": True,
        "rescale_embeddings": flag(raw, "scale_embedding", True),
        "bias": bias,
        "out_bias": bias,
        "attention": ATTENTION[kind],
        "block": whole("block_size", given["block_size"], 1),
        "random_blocks": whole("num_random_blocks", given["num_random_blocks"], 0),
    }
    return read_fields(raw, USUAL, BigBirdConfig, encoder, positions=rows, bias=bias)


def write(config: Seq2SeqConfig) -> dict[str, Any]:
    """BigBird-Pegasus's config of ours."""
    encoder = config.encoder
    assert isinstance(encoder, BigBirdConfig)
    return write_fields(config) | {
        "max_position_embeddings": config.positions,
        "scale_embedding": encoder.rescale_embeddings,
        "attention_type": "original_full" if encoder.attention == "full" else "block_sparse",
        "block_size": encoder.block,
        "num_random_blocks": encoder.random_blocks,
        "use_bias": config.bias,
    }


def cannot(config: Seq2SeqConfig) -> str | None:
    """What BigBird-Pegasus has no words for."""
    encoder = config.encoder
    assert isinstance(encoder, BigBirdConfig)
    if not config.bias == encoder.bias == encoder.out_bias:
        return "biases in some projections only"
    if encoder.attention != "full":
        if encoder.random != "hf" or encoder.random_blocks == 0:
            return "another plan of random blocks"
        if encoder.short != (5 + 2 * encoder.random_blocks) * encoder.block:
            return "another length up to which attention is full"
    return unlike_bart(config, 0, same=True, pegasus=True)


BIGBIRD_PEGASUS = replace(
    BART,
    model_type="bigbird_pegasus",
    name="BigBirdPegasus",
    read=read,
    write=write,
    cannot=cannot,
    body=WORDS
    | DECODER
    | side(
        "encoder",
        {
            "attention.qkv": tuple(f"{_ATTENTION}.{name}" for name in ("query", "key", "value")),
            "attention.out": ("self_attn.output",),
        },
    ),
)
