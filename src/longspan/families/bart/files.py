"""BART's files, and what those of all models with a decoder have in common."""

from collections.abc import Mapping
from typing import Any

from longspan.errors import bad, whole
from longspan.families.base import Family
from longspan.families.bert.model import BertConfig
from longspan.families.config import LARGEST, EncoderConfig
from longspan.families.schema import Raw, build_config, flag, refuse_unsupported, text
from longspan.families.seq2seq.model import Seq2SeqConfig

_READING = (
    ("vocab_size", "vocab_size", 50265),
    ("d_model", "width", 1024),
    ("encoder_layers", "layers", 12),
    ("encoder_attention_heads", "heads", 16),
    ("encoder_ffn_dim", "feed_forward", 4096),
    ("activation_function", "activation", "gelu"),
    ("dropout", "dropout", 0.1),
    ("attention_dropout", "attention_dropout", 0.0),
    ("activation_dropout", "activation_dropout", 0.0),
    ("init_std", "init_std", 0.02),
    ("pad_token_id", "pad_id", 1),
)
_WRITING = (
    ("decoder_layers", "layers", 12),
    ("decoder_attention_heads", "heads", 16),
    ("decoder_ffn_dim", "feed_forward", 4096),
    ("decoder_start_token_id", "start_id", 2),
    ("bos_token_id", "bos_id", 0),
    ("eos_token_id", "eos_id", 2),
)
READING, WRITING = ({theirs: ours for theirs, ours, _ in table} for table in (_READING, _WRITING))
"""Their names and ours: of the encoder and all but the sizes of the decoder, and of those sizes."""
DEFAULTS: dict[str, Any] = {theirs: default for theirs, _, default in (*_READING, *_WRITING)}
"""What a field that is not there means to BART."""
FIELDS = {*READING, *WRITING, "scale_embedding"} - {"pad_token_id", "bos_token_id", "eos_token_id"}
"""All that mean nothing to families without a decoder."""
BEFORE = 2
"""Rows of BART's position tables before position 0."""
_FIXED = {
    "normalize_before": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": False,
    "normalize_embedding": True,
    "extra_pos_embeddings": BEFORE,
}
"""What files of 2020 say of BART, and must."""


def read_fields(
    raw: Raw, defaults: Raw, kind: type[EncoderConfig], reader: dict[str, Any], **writer: Any
) -> Seq2SeqConfig:
    """The config of the fields that all have, and of ours for the encoder, `reader`, and the decoder."""
    refuse_unsupported(raw)
    known = {**defaults, **{name: value for name, value in raw.items() if value is not None}}
    if isinstance(known["eos_token_id"], list) and len(known["eos_token_id"]) == 1:
        known["eos_token_id"] = known["eos_token_id"][0]
    text(known, "activation_function")
    read, written = ({ours: known[theirs] for theirs, ours in names.items()} for names in (READING, WRITING))
    encoder = build_config(kind, read | {"token_types": 0, "norm_eps": 1e-5} | reader, READING)
    return build_config(Seq2SeqConfig, written | writer | {"encoder": encoder}, WRITING)


def length(raw: Raw, name: str, default: int) -> int:
    """A field that counts positions."""
    return whole(name, raw.get(name, default), 1, most=LARGEST)


def read(raw: Raw) -> Seq2SeqConfig:
    """Our config of BART's."""
    for name, only in _FIXED.items():
        if raw.get(name, only) != only:
            raise bad(name, repr(only), raw[name], "Longspan reads BART only as it was released.")
    rows = {"positions": length(raw, "max_position_embeddings", 1024), "position_offset": BEFORE}
    scaled = {"rescale_embeddings": flag(raw, "scale_embedding", False)}
    return read_fields(raw, DEFAULTS, BertConfig, rows | scaled, **rows)


def write_fields(config: Seq2SeqConfig) -> dict[str, Any]:
    """What all have."""
    reading = {theirs: getattr(config.encoder, ours) for theirs, ours in READING.items()}
    writing = {theirs: getattr(config, ours) for theirs, ours in WRITING.items()}
    return reading | writing | {"is_encoder_decoder": True}


def write(config: Seq2SeqConfig) -> dict[str, Any]:
    """BART's config of ours."""
    scaled = config.encoder.rescale_embeddings
    return write_fields(config) | {"max_position_embeddings": config.positions, "scale_embedding": scaled}


def unlike_bart(config: Seq2SeqConfig, offset: int, *, same: bool, pegasus: bool = False) -> str | None:
    """What no such family has words for; with `same`, both sides have the same number of positions."""
    encoder = config.encoder
    if encoder.buckets or encoder.token_types:
        return "token types or biases by distance before a decoder"
    if not (config.bias or pegasus):
        return "attention without biases"
    if encoder.norm_first != pegasus:
        return "norms that stand elsewhere"
    if {encoder.position_offset, config.position_offset} != {offset}:
        return f"positions that do not begin in row {offset}"
    if same and encoder.positions != config.positions:
        return "a decoder with other positions than its encoder"
    return None if encoder.norm_eps == 1e-5 else "another epsilon of norms"


def cannot(config: Seq2SeqConfig) -> str | None:
    """What BART has no words for."""
    if getattr(config.encoder, "radius", None) is not None:
        return "a window"
    return unlike_bart(config, BEFORE, same=True)


def side(side: str, ours: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Names of a side's modules, those of its layers among them."""
    layer = {
        "attention_norm": ("self_attn_layer_norm",),
        "feed_forward.up": ("fc1",),
        "feed_forward.down": ("fc2",),
        "feed_forward_norm": ("final_layer_norm",),
    }
    named = {
        f"{side}.layers.#.{name}": tuple(f"{side}.layers.#.{one}" for one in theirs)
        for name, theirs in (layer | dict(ours)).items()
    }
    return named | {
        f"{side}.embeddings.positions": (f"{side}.embed_positions",),
        f"{side}.embeddings.norm": (f"{side}.layernorm_embedding",),
        f"{side}.layers.#.closing_norm": (f"{side}.layernorm_embedding",),  # Pegasus: not what it is called
    }


def _projections(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}_proj" for name in names)


_SELF = {
    "attention.qkv": _projections("self_attn.q", "self_attn.k", "self_attn.v"),
    "attention.out": _projections("self_attn.out"),
}
DECODER = side(
    "decoder",
    _SELF
    | {
        "cross.query": _projections("encoder_attn.q"),
        "cross.kv": _projections("encoder_attn.k", "encoder_attn.v"),
        "cross.out": _projections("encoder_attn.out"),
        "cross_norm": ("encoder_attn_layer_norm",),
    },
)
WORDS = {"encoder.embeddings.words": ("shared",)}
_TIED = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")

BART = Family(
    model_type="bart",
    name="Bart",
    own_type="longspan-seq2seq",
    config=Seq2SeqConfig,
    prefix="model.",
    heads={
        "Model": {},
        "ForConditionalGeneration": {"decoder": "lm_head", "bias": "final_logits_bias"},
        "ForSequenceClassification": {
            "dense": "classification_head.dense",
            "out": "classification_head.out_proj",
        },
        "ForQuestionAnswering": {"out": "qa_outputs"},
    },
    ties={"lm_head.weight": "{backbone}shared.weight"},
    backbone_ties={f"{{backbone}}{name}": "{backbone}shared.weight" for name in _TIED},
    read=read,
    write=write,
    cannot=cannot,
    backbone=WORDS | side("encoder", _SELF) | DECODER,
    fields=frozenset(FIELDS),
    pretrained="ForConditionalGeneration",
    bare="ForConditionalGeneration",
)
