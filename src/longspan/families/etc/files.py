"""ETC's files: etcmodel's TensorFlow checkpoints, which are read, and our own, which are written."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from longspan.errors import bad, whole
from longspan.families.bert.files import BERT
from longspan.families.config import LARGEST
from longspan.families.etc.lengthen import TO_ETC
from longspan.families.etc.model import EtcConfig, bigbird_etc_base, bigbird_etc_large, etc_base, etc_large
from longspan.families.schema import Raw, build_config, flag, text
from longspan.formats.tensorflow_names import LEAVES, torch_names

CONFIG = "etc_config.json"
_TABLE = (
    ("segment_vocab_size", "token_types", 16),
    ("hidden_size", "width", 768),
    ("num_hidden_layers", "layers", 12),
    ("num_attention_heads", "heads", 12),
    ("local_radius", "radius", 84),
    ("relative_pos_max_distance", "distance", 12),
    ("intermediate_size", "feed_forward", 3072),
    ("hidden_act", "activation", "gelu"),
    ("hidden_dropout_prob", "dropout", 0.1),
    ("attention_probs_dropout_prob", "attention_dropout", 0.1),
    ("initializer_range", "init_std", 0.02),
    ("share_feed_forward_params", "share_feed_forward", True),
    ("share_att_output_projection", "share_out", False),
    ("use_hard_g2l_mask", "hard_g2l", False),
    ("use_hard_l2g_mask", "hard_l2g", False),
)
SAME = {"vocab_size": "vocab_size"} | {theirs: ours for theirs, ours, _ in _TABLE}
"""Their names and ours, where the meaning is the same."""
DEFAULTS: dict[str, Any] = {theirs: default for theirs, _, default in _TABLE} | {
    "embedding_size": None,
    "att_size_per_head": None,
    "relative_vocab_size": 32,
    "max_absolute_position_embeddings": 0,
    "share_kv_projections": False,
    "share_qkv_projections": True,
    "use_pre_activation_order": False,
    "grad_checkpointing_period": 0,
}
"""What a field of etc_config.json that is not there means; the vocabulary's size must be."""


def read(raw: Raw) -> EtcConfig:
    """Our config of theirs."""
    known = DEFAULTS | {"vocab_size": None, **raw}
    for name in (name for name, default in DEFAULTS.items() if isinstance(default, bool)):
        flag(known, name, False)
    if known["use_pre_activation_order"]:
        raise bad("use_pre_activation_order", "false", True, "Longspan's norms stand behind the residuals.")
    fields = {ours: known[theirs] for theirs, ours in SAME.items()}
    width = whole("hidden_size", known["hidden_size"], 1, most=LARGEST)
    heads = whole("num_attention_heads", known["num_attention_heads"], 1, most=LARGEST)
    if known["att_size_per_head"] not in (None, width / heads):
        requirement = f"null or {width // heads}, width over heads"
        raise bad("att_size_per_head", requirement, known["att_size_per_head"])
    distance = whole("relative_pos_max_distance", known["relative_pos_max_distance"], 0, most=LARGEST)
    labels = known["relative_vocab_size"]
    positions = whole("max_absolute_position_embeddings", known["max_absolute_position_embeddings"], 0)
    shared = {"all": known["share_qkv_projections"], "sides": known["share_kv_projections"], "none": True}
    act = text(known, "hidden_act").lower()
    fields |= {
        "activation": "gelu_new" if act == "gelu" else act,  # their gelu is the one with tanh
        "embedding_size": None if known["embedding_size"] in (None, width) else known["embedding_size"],
        "relative": 0 if labels is None else whole("relative_vocab_size", labels, 2 * distance + 4),
        "sharing": next(sharing for sharing, so in shared.items() if so),
        "absolute": positions > 0,
    }
    return build_config(EtcConfig, fields | ({"positions": positions} if positions else {}), SAME, CONFIG)


WORDS = "token_emb_lookup/embedding_table"
"""What precedes it is the name that a program gave to the whole model."""
LONG = "long_feed_forward_layer_", "feed_forward_layer_"
"""A layer of the long stream where global tokens have their own, and where they do not."""
VARIABLES = {
    "embedding_table": "weight",
    "output_bias": "bias",
    "relative_emb_table": "keys",
    "relative_bias_table": "bias",
}
"""The variables of etcmodel's own layers."""


def variable_names(variables: Iterable[str]) -> dict[str, str]:
    """What variables are called here, without those that are no weights and without the model's own name.

    >>> etc = variable_names(["etc/token_emb_lookup/embedding_table", "etc/long_feed_forward_layer_0/kernel"])
    >>> list(etc.values())
    ['token_emb_lookup.weight', 'feed_forward_layer_0.weight']
    """
    every = list(variables)
    prefix = next((name.removesuffix(WORDS) for name in every if name.endswith(WORDS)), "")
    plain = {name: name.removeprefix(prefix).replace(*LONG) for name in every}
    names = torch_names(plain.values(), LEAVES | VARIABLES)
    return {name: names[plain[name]] for name in every if plain[name] in names}


_ATTENTION = "global_local_transformer_layers.fused_att_layer_#.fused_global_local_att"
_BLOCK, _SECOND = (f"global_local_transformer_layers.{side}feed_forward_layer_#" for side in ("", "global_"))


def _projections(*names: str) -> tuple[str, ...]:
    return tuple(f"{_ATTENTION}.{name}_projection.linear" for name in names)


ETC = replace(
    BERT,
    model_type="etc",
    name="Etc",
    own_type="longspan-etc",
    config=EtcConfig,
    prefix="",
    ties={**BERT.ties, "cls.predictions.decoder.weight": "{backbone}token_emb_lookup.weight"},
    read=read,
    cannot=lambda config: "a second stream of global tokens",
    variable_names=variable_names,
    config_file=CONFIG,
    fields=frozenset(DEFAULTS),
    lengthening=TO_ETC,
    presets={
        "etc-base": etc_base(),
        "etc-large": etc_large(),
        "bigbird-etc-base": bigbird_etc_base(),
        "bigbird-etc-large": bigbird_etc_large(),
    },
    unused={},
    backbone={
        "embeddings.words": ("token_emb_lookup",),
        "embeddings.projection": ("token_emb_lookup.projection",),
        "embeddings.types": ("segment_emb_lookup",),
        "embeddings.positions": ("position_emb_lookup_long",),
        "embeddings.global_positions": ("position_emb_lookup_global",),
        "embeddings.norm": ("long_emb_layer_norm",),
        "embeddings.global_norm": ("global_emb_layer_norm",),
        "layers.#.attention.qkv": _projections("long_query", "l2l_key", "l2l_value"),
        "layers.#.attention.long_query": _projections("long_query"),
        "layers.#.attention.long_kv": _projections("l2l_key", "l2l_value"),
        "layers.#.attention.global_query": _projections("global_query"),
        "layers.#.attention.global_kv": _projections("g2g_key", "g2g_value"),
        "layers.#.attention.from_long": _projections(
            "long_query", "l2l_key", "l2l_value", "g2l_key", "g2l_value"
        ),
        "layers.#.attention.from_global": _projections(
            "global_query", "g2g_key", "g2g_value", "l2g_key", "l2g_value"
        ),
        "layers.#.attention.out": (f"{_ATTENTION}.long_output_projection",),
        "layers.#.attention.global_out": (f"{_ATTENTION}.global_output_projection",),
        "layers.#.attention.long_relative": (f"{_ATTENTION}.long_qkv_attention.qkv_relative_attention",),
        "layers.#.attention.global_relative": (f"{_ATTENTION}.global_qkv_attention",),
        "layers.#.attention_norm": ("global_local_transformer_layers.fused_att_layer_#.layer_norm_0",),
        "layers.#.global_attention_norm": ("global_local_transformer_layers.fused_att_layer_#.layer_norm_1",),
        "layers.#.feed_forward.up": (f"{_BLOCK}.dense_layers.layer_0",),
        "layers.#.feed_forward.down": (f"{_BLOCK}.dense_layers.layer_1",),
        "layers.#.feed_forward_norm": (f"{_BLOCK}.layer_norm",),
        "layers.#.global_feed_forward.up": (f"{_SECOND}.dense_layers.layer_0",),
        "layers.#.global_feed_forward.down": (f"{_SECOND}.dense_layers.layer_1",),
        "layers.#.global_feed_forward_norm": (f"{_SECOND}.layer_norm",),
    },
)
