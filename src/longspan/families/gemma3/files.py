"""EmbeddingGemma's files: those of Gemma 3, of which only encoders are read."""

from typing import Any

from longspan.errors import bad, whole
from longspan.families.alternating import FULL, SLIDING, read_kinds
from longspan.families.base import BARE, Family
from longspan.families.gemma3.model import Gemma3Config
from longspan.families.grouped import LAYER, NAMES
from longspan.families.rotary import LONGEST, read_length, read_ropes, unsaid, write_length, write_rope
from longspan.families.schema import Raw, build_config, flag, refuse_unsupported, text

BIDIRECTIONAL = "use_bidirectional_attention"
SAME = {
    "vocab_size": "vocab_size",
    "hidden_size": "width",
    "num_hidden_layers": "layers",
    "num_attention_heads": "heads",
    "num_key_value_heads": "kv_heads",
    "head_dim": "head_dim",
    "intermediate_size": "feed_forward",
    "hidden_activation": "activation",
    "attention_dropout": "attention_dropout",
    "rms_norm_eps": "norm_eps",
    "initializer_range": "init_std",
    "query_pre_attn_scalar": "query_scalar",
}
USUAL: dict[str, Any] = {
    "vocab_size": 262_208,
    "hidden_size": 2304,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "intermediate_size": 9216,
    "hidden_activation": "gelu_pytorch_tanh",
    "attention_dropout": 0.0,
    "query_pre_attn_scalar": 256,
}
"""What a field that is not there means: the sizes of a large Gemma."""
OLD_THETA = {FULL: ("rope_theta", 1_000_000.0), SLIDING: ("rope_local_base_freq", 10_000.0)}


def read(raw: Raw) -> Gemma3Config:
    """Our config of theirs."""
    refuse_unsupported(raw)
    if not raw.get(BIDIRECTIONAL):
        repair = "Longspan reads encoders such as EmbeddingGemma; a causal Gemma writes."
        raise bad(BIDIRECTIONAL, "true", raw.get(BIDIRECTIONAL, False), repair)
    flag(raw, BIDIRECTIONAL, True)
    if raw.get("attn_logit_softcapping") is not None:
        capped = raw["attn_logit_softcapping"]
        raise bad("attn_logit_softcapping", "null", capped, "Longspan has no such model.")
    if "hidden_activation" in raw:
        text(raw, "hidden_activation")
    known = {**USUAL, **raw}
    stated = {ours: known[theirs] for theirs, ours in SAME.items() if theirs in known}
    layers = whole("num_hidden_layers", known["num_hidden_layers"], 1, most=1024)
    longest, positions = read_length(raw, 131_072)
    thetas = {kind: raw.get(old, usual) for kind, (old, usual) in OLD_THETA.items()}
    ropes = read_ropes(raw, thetas, longest=longest, scaled=(FULL,))
    more = {
        "positions": positions,
        "radius": whole("sliding_window", raw.get("sliding_window", 4096), 2) // 2,
        "layer_types": read_kinds(Gemma3Config, raw, layers, "sliding_window_pattern"),
        "rope": ropes[FULL],
        "local_rope": ropes[SLIDING],
        "attention_bias": flag(raw, "attention_bias", False),
    }
    if raw.get("pad_token_id", 0) is not None:
        more["pad_id"] = whole("pad_token_id", raw.get("pad_token_id", 0), 0)
    return build_config(Gemma3Config, stated | more, SAME | {"sliding_window": "radius"})


def write(config: Gemma3Config) -> dict[str, Any]:
    """Their config of ours."""
    return {
        **{theirs: getattr(config, ours) for theirs, ours in SAME.items()},
        **write_length(config.positions, (config.rope, config.local_rope)),
        "num_key_value_heads": config.groups,
        "head_dim": config.head_size,
        "query_pre_attn_scalar": int(config.query_scalar),
        "sliding_window": 2 * config.radius,
        "layer_types": list(config.kinds),
        "rope_parameters": {FULL: write_rope(config.rope), SLIDING: write_rope(config.local_rope)},
        "attention_bias": config.attention_bias,
        BIDIRECTIONAL: True,
        "pad_token_id": config.pad_id,
    }


def cannot(config: Gemma3Config) -> str | None:
    """What Hugging Face has no words for."""
    if config.token_types or config.embedding_size is not None or config.buckets:
        return "token types, projected embeddings or biases by distance"
    if not config.norm_first or not config.rescale_embeddings:
        return "norms behind the blocks only, or embeddings as they are"
    if config.dropout or config.activation_dropout:
        return "dropout of hidden states"
    if config.query_scalar != int(config.query_scalar):
        return "scores divided by the root of a fraction"
    return unsaid(config.positions, config.rope, config.local_rope)


GEMMA3 = Family(
    model_type="gemma3_text",
    name="Gemma3Text",
    own_type="longspan-gemma3",
    config=Gemma3Config,
    prefix="model.",
    heads={BARE: {}},
    ties={},
    read=read,
    write=write,
    cannot=cannot,
    pretrained=BARE,
    fields=frozenset(
        {*SAME, "sliding_window", "layer_types", "rope_parameters", "attention_bias", BIDIRECTIONAL}
    ),
    stale=frozenset({LONGEST, "rope_local_base_freq", "sliding_window_pattern"}),
    head_style="own",
    heads_in_old_files=lambda stored: "own",
    backbone=NAMES
    | {
        "layers.#.attention.query_norm": (f"{LAYER}.self_attn.q_norm",),
        "layers.#.attention.key_norm": (f"{LAYER}.self_attn.k_norm",),
        "layers.#.attention_out_norm": (f"{LAYER}.post_attention_layernorm",),
        "layers.#.feed_forward_norm": (f"{LAYER}.pre_feedforward_layernorm",),
        "layers.#.feed_forward_out_norm": (f"{LAYER}.post_feedforward_layernorm",),
    },
    presets={"embeddinggemma-300m": Gemma3Config()},
)
