"""MPNet's files: RoBERTa's heads on a body with names of its own and a table of biases by distance."""

from dataclasses import replace
from typing import Any

from longspan.errors import bad, whole
from longspan.families.bert.files import unlike_layers
from longspan.families.keys import BACKBONE
from longspan.families.mpnet.model import MPNetConfig
from longspan.families.roberta.files import ROBERTA
from longspan.families.schema import Raw, build_config, common, shared

BUCKETS = "relative_attention_num_buckets"
PADDING = 1
"""Positions begin behind this number, whatever the padding token's is."""


def read(raw: Raw) -> MPNetConfig:
    """Our config of theirs."""
    if raw.get(BUCKETS, 32) != 32:
        raise bad(BUCKETS, "32", raw[BUCKETS], "Hugging Face computes so many, whatever stands there.")
    known = common({**raw, "pad_token_id": PADDING}, pad=PADDING, defaults={"vocab_size": 30527}, offset=True)
    pad_id = whole("pad_token_id", raw.get("pad_token_id", PADDING), 0)
    return build_config(MPNetConfig, known | {"pad_id": pad_id, "token_types": 0, "buckets": 32})


def write(config: MPNetConfig) -> dict[str, Any]:
    """Their config of ours."""
    fields = shared(config)
    del fields["type_vocab_size"]
    return fields | {BUCKETS: config.buckets}


def cannot(config: MPNetConfig) -> str | None:
    """What Hugging Face has no words for."""
    if config.buckets != 32:
        return "another number of buckets"
    if config.position_offset != PADDING + 1:
        return f"positions that do not begin at {PADDING + 1}"
    if config.embedding_size is not None:
        return "embeddings that are projected"
    return "token types" if config.token_types else unlike_layers(config)


_LAYER = "encoder.layer.#.attention"
MPNET = replace(
    ROBERTA,
    model_type="mpnet",
    name="MPNet",
    own_type="longspan-mpnet",
    config=MPNetConfig,
    prefix="mpnet.",
    read=read,
    write=write,
    cannot=cannot,
    fields=frozenset({BUCKETS}),
    heads_in_old_files=lambda stored: "roberta",
    presets={"mpnet-base": MPNetConfig()},
    backbone=BACKBONE
    | {
        "layers.#.attention.qkv": tuple(f"{_LAYER}.attn.{name}" for name in "qkv"),
        "layers.#.attention.out": (f"{_LAYER}.attn.o",),
        "layers.#.attention_norm": (f"{_LAYER}.LayerNorm",),
    },
)
