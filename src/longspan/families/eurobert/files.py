"""EuroBERT's files."""

from dataclasses import replace
from typing import Any

from longspan.errors import one_of, whole
from longspan.families.base import Family
from longspan.families.eurobert.model import EuroBertConfig
from longspan.families.grouped import LAYER, NAMES
from longspan.families.rotary import LONGEST, read_length, read_rope, unsaid, write_length, write_rope
from longspan.families.schema import Raw, build_config, flag, refuse_unsupported, text

SAME = {
    "vocab_size": "vocab_size",
    "hidden_size": "width",
    "num_hidden_layers": "layers",
    "num_attention_heads": "heads",
    "num_key_value_heads": "kv_heads",
    "head_dim": "head_dim",
    "intermediate_size": "feed_forward",
    "hidden_act": "activation",
    "attention_dropout": "attention_dropout",
    "rms_norm_eps": "norm_eps",
    "initializer_range": "init_std",
}
FLAGS = {"attention_bias": "attention_bias", "mlp_bias": "feed_forward_bias"}
POOLED = {"bos": "first", "mean": "mean", "late": "late"}
PAD, THETA = 128001, 10_000.0


def read(raw: Raw) -> EuroBertConfig:
    """Our config of theirs."""
    refuse_unsupported(raw)
    if "hidden_act" in raw:
        text(raw, "hidden_act")
    stated = {ours: raw[theirs] for theirs, ours in SAME.items() if theirs in raw}
    stated |= {ours: flag(raw, theirs, False) for theirs, ours in FLAGS.items()}
    pooling = one_of("classifier_pooling", raw.get("classifier_pooling", "late"), POOLED)
    longest, positions = read_length(raw, 8192)
    more = {
        "positions": positions,
        "classifier_pooling": POOLED[pooling],
        "rope": read_rope(
            raw.get("rope_scaling") or raw.get("rope_parameters"),
            theta=raw.get("rope_theta", THETA),
            longest=longest,
        ),
    }
    if raw.get("pad_token_id", PAD) is not None:
        more["pad_id"] = whole("pad_token_id", raw.get("pad_token_id", PAD), 0)
    config = build_config(EuroBertConfig, stated | more, SAME)
    usual = config.kv_heads == config.heads, config.head_dim == config.width // config.heads
    kv_heads, head_dim = None if usual[0] else config.kv_heads, None if usual[1] else config.head_dim
    return replace(config, kv_heads=kv_heads, head_dim=head_dim)


def write(config: EuroBertConfig) -> dict[str, Any]:
    """Their config of ours."""
    (pooling,) = (theirs for theirs, ours in POOLED.items() if ours == config.classifier_pooling)
    return {
        **{theirs: getattr(config, ours) for theirs, ours in (SAME | FLAGS).items()},
        **write_length(config.positions, [config.rope]),
        "num_key_value_heads": config.groups,
        "head_dim": config.head_size,
        "rope_parameters": write_rope(config.rope),
        "classifier_pooling": pooling,
        "pad_token_id": config.pad_id,
    }


def cannot(config: EuroBertConfig) -> str | None:
    """What Hugging Face has no words for."""
    if config.token_types or config.embedding_size is not None or config.buckets:
        return "token types, projected embeddings or biases by distance"
    if not config.norm_first or config.rescale_embeddings:
        return "norms behind the blocks, or rescaled embeddings"
    if config.dropout or config.activation_dropout:
        return "dropout of hidden states"
    return unsaid(config.positions, config.rope)


EUROBERT = Family(
    model_type="eurobert",
    name="EuroBert",
    own_type="longspan-eurobert",
    config=EuroBertConfig,
    prefix="model.",
    heads={
        "Model": {},
        "ForMaskedLM": {"decoder": "lm_head"},
        "ForSequenceClassification": {"dense": "dense", "out": "classifier"},
        "ForTokenClassification": {"out": "classifier"},
    },
    ties={"lm_head.weight": "{backbone}embed_tokens.weight"},
    ties_words=False,
    read=read,
    write=write,
    cannot=cannot,
    fields=frozenset({*SAME, *FLAGS, "rope_parameters", "classifier_pooling"}),
    stale=frozenset({LONGEST, "rope_theta", "rope_scaling"}),
    head_style="own",
    heads_in_old_files=lambda stored: "own",
    backbone=NAMES | {"layers.#.feed_forward_norm": (f"{LAYER}.post_attention_layernorm",)},
    presets={
        "eurobert-210m": EuroBertConfig(pad_id=PAD),
        "eurobert-610m": EuroBertConfig(
            width=1152, layers=26, heads=18, kv_heads=6, feed_forward=4096, pad_id=PAD
        ),
        "eurobert-2.1b": EuroBertConfig(
            width=2304, layers=32, heads=18, kv_heads=6, feed_forward=6144, pad_id=PAD
        ),
    },
)
