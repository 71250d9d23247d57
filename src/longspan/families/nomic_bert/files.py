"""Nomic BERT's files, by transformers' config keys and by those of its authors."""

from collections.abc import Mapping
from typing import Any

from longspan.errors import bad, number, whole
from longspan.families.base import Family
from longspan.families.bert.files import BERT
from longspan.families.nomic_bert.model import NomicBertConfig
from longspan.families.rotary import OTHER_NAMES, read_sizes, unlike_rotary, write_sizes
from longspan.families.schema import Raw, build_config

THETA, PAD = 1_000.0, 0
AUTHORS = {
    "n_embd": "hidden_size",
    "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads",
    "n_inner": "intermediate_size",
    "layer_norm_epsilon": "layer_norm_eps",
    "resid_pdrop": "hidden_dropout_prob",
    "attn_pdrop": "attention_probs_dropout_prob",
    "max_trained_positions": "max_position_embeddings",
}
"""Names of the authors' config and transformers', where the meaning is the same."""
GATES = {"swiglu": "silu", "geglu": "gelu"}
ONLY: Mapping[str, object] = {
    "causal": False,
    "mlp_fc1_bias": False,
    "mlp_fc2_bias": False,
    "moe_every_n_layers": 0,
    "parallel_block": False,
    "prenorm": False,
    "qkv_proj_bias": False,
    "rotary_emb_fraction": 1.0,
    "rotary_emb_interleaved": False,
    "rotary_emb_scale_base": None,
    "scale_attn_by_inverse_layer_idx": False,
    "scale_attn_weights": True,
    "use_rms_norm": False,
}
"""Fields of the authors' config that may have no other value here."""
DEFAULTS = {
    "vocab_size": 30528,
    "hidden_act": "silu",
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "max_position_embeddings": 2048,
}


def read(raw: Raw) -> NomicBertConfig:
    """Our config of theirs; where both dialects are there, transformers' is believed."""
    for name, only in ONLY.items():
        if raw.get(name) not in (None, only):
            raise bad(name, f"{only!r}", raw[name], "Longspan has no such model.")
    theirs = {new: raw[old] for old, new in AUTHORS.items() if raw.get(old) is not None}
    gate = raw.get("activation_function")
    if gate is not None and (not isinstance(gate, str) or gate not in GATES):
        raise bad("activation_function", f"one of {', '.join(GATES)}", gate)
    theirs |= {} if gate is None else {"hidden_act": GATES[gate]}
    known = {**theirs, **raw}
    theta = known.get("rotary_emb_base") or THETA
    factor = raw.get("rotary_scaling_factor")
    if factor is not None and not raw.get("rope_parameters"):
        number("rotary_scaling_factor", factor, 1.0, 1e6)
        known["rope_parameters"] = {"rope_type": "dynamic", "factor": factor, "rope_theta": theta}
    sizes = read_sizes(known, defaults=DEFAULTS, pad=PAD, theta=theta)
    trained = sizes["positions"]
    longest = whole("n_positions", raw.get("n_positions") or trained, 1)
    return build_config(NomicBertConfig, sizes | {"positions": longest, "trained_positions": trained})


def write(config: NomicBertConfig) -> dict[str, Any]:
    """Their config of ours."""
    fields = write_sizes(config) | {"max_position_embeddings": config.trained_positions}
    more = {} if config.positions == config.trained_positions else {"n_positions": config.positions}
    return fields | {"head_dim": config.head_size} | more


def cannot(config: NomicBertConfig) -> str | None:
    """What Hugging Face has no words for."""
    if not config.token_types:
        return "a model without token types"
    return unlike_rotary(config)


_LAYER = "encoder.layers.#"
NOMIC_BERT = Family(
    model_type="nomic_bert",
    name="NomicBert",
    own_type="longspan-nomic-bert",
    config=NomicBertConfig,
    prefix="nomic_bert.",
    heads={
        "Model": BERT.heads["Model"],
        "ForSequenceClassification": BERT.heads["ForSequenceClassification"],
        "ForTokenClassification": BERT.heads["ForTokenClassification"],
        "ForMaskedLM": {**BERT.heads["ForMaskedLM"], "norm": "cls.predictions.transform.layer_norm"},
    },
    own_heads={"ForQuestionAnswering": ("out",), "ForMultipleChoice": ("dense", "out")},
    ties=BERT.ties,
    read=read,
    write=write,
    cannot=cannot,
    fields=frozenset({*AUTHORS, *ONLY, "activation_function", "n_positions", "head_dim", "rope_parameters"})
    | {"rotary_emb_base", "rotary_scaling_factor"},
    head_style="bert",
    heads_in_old_files=lambda stored: "bert",
    backbone={
        "embeddings.words": ("embeddings.word_embeddings",),
        "embeddings.types": ("embeddings.token_type_embeddings",),
        "embeddings.norm": ("emb_ln",),
        "layers.#.attention.qkv": (f"{_LAYER}.attn.Wqkv",),
        "layers.#.attention.out": (f"{_LAYER}.attn.out_proj",),
        "layers.#.attention_norm": (f"{_LAYER}.norm1",),
        "layers.#.feed_forward.up": (f"{_LAYER}.mlp.fc12", f"{_LAYER}.mlp.fc11"),
        "layers.#.feed_forward.down": (f"{_LAYER}.mlp.fc2",),
        "layers.#.feed_forward_norm": (f"{_LAYER}.norm2",),
    },
    other_names=OTHER_NAMES
    | {
        "layers.#.feed_forward.up": ("layers.#.mlp.gate_proj", "layers.#.mlp.up_proj"),
        "layers.#.feed_forward.down": ("layers.#.mlp.down_proj",),
    },
    presets={"nomic-bert-base": NomicBertConfig(), "nomic-embed-text-v1.5": NomicBertConfig()},
)
