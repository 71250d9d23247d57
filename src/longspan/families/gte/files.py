"""GTE's files: transformers' and those of its authors' code, whose model type is "new"."""

from collections.abc import Mapping
from typing import Any

from longspan.errors import bad, number
from longspan.families.base import Family
from longspan.families.bert.files import BERT
from longspan.families.gte.model import GteConfig
from longspan.families.rotary import OTHER_NAMES, read_sizes, unlike_rotary, write_sizes
from longspan.families.schema import Raw, build_config
from longspan.nn.rope import RopeParameters

AUTHORS = "new"
PAD = 1
DEFAULTS = {
    "vocab_size": 250048,
    "attention_probs_dropout_prob": 0.0,
    "max_position_embeddings": 8192,
    "type_vocab_size": 1,
}
AUTHORS_DEFAULTS = {**DEFAULTS, "vocab_size": 30528, "max_position_embeddings": 2048}
THETA, AUTHORS_THETA = 160_000.0, 10_000.0
ONLY: Mapping[str, object] = {
    "layer_norm_type": "layer_norm",
    "logn_attention_clip1": False,
    "logn_attention_scale": False,
    "position_embedding_type": "rope",
}
"""Fields of the authors' config that may have no other value here."""


def is_original(raw: Raw) -> bool:
    """Whether a config.json is that of the authors' own code."""
    return raw.get("model_type") == AUTHORS


def read(raw: Raw) -> GteConfig:
    """Our config of theirs, or of the authors'."""
    if not is_original(raw):
        sizes = read_sizes(raw, defaults=DEFAULTS, pad=PAD, theta=THETA)
        return build_config(GteConfig, sizes)
    for name, only in ONLY.items():
        if raw.get(name, only) != only:
            raise bad(name, f"{only!r}", raw[name], "Longspan has no such model.")
    known = {name: value for name, value in raw.items() if name not in ONLY}
    known |= {"rope_parameters": None, "rope_scaling": None} | _scaled(known)
    pad = 0 if raw.get("pad_token_id") is None else raw["pad_token_id"]
    sizes = read_sizes({**known, "pad_token_id": pad}, defaults=AUTHORS_DEFAULTS, pad=0, theta=AUTHORS_THETA)
    return build_config(GteConfig, sizes)


def _scaled(raw: Raw) -> dict[str, Any]:
    """The authors' scaling of angles, in transformers' words.

    By a factor f they raise the base to f times itself and divide all frequencies by f^(2 / D), which is
    linear scaling of the new base.
    """
    scaling = raw.get("rope_scaling")
    if scaling is None:
        return {}
    if not isinstance(scaling, Mapping):
        raise bad("rope_scaling", "fields of rotary positions", scaling)
    stated = {name: value for name, value in scaling.items() if value is not None}
    kind = stated.get("type", stated.get("rope_type"))
    if kind != "ntk" or not {*stated} <= {"type", "rope_type", "factor"}:
        raise bad("rope_scaling", '{"type": "ntk", "factor": ...}', dict(scaling), "Longspan has no other.")
    factor = number("rope_scaling.factor", stated.get("factor"), 1.0, 1e6)
    theta = number("rope_theta", raw.get("rope_theta") or AUTHORS_THETA, 1.0, 1e9)
    heads, width = raw.get("num_attention_heads", 12), raw.get("hidden_size", 768)
    if not isinstance(heads, int) or not isinstance(width, int) or not 0 < heads <= width:
        return {}  # which the sizes' own check tells
    size = width // heads
    linear = {"rope_type": "linear", "factor": factor ** (2 / size), "rope_theta": theta * factor}
    return {"rope_parameters": linear}


_LAYER = "encoder.layer.#"
GTE = Family(
    model_type="gte",
    name="Gte",
    own_type="longspan-gte",
    config=GteConfig,
    prefix="gte.",
    heads={
        "Model": BERT.heads["Model"],
        "ForSequenceClassification": BERT.heads["ForSequenceClassification"],
        "ForTokenClassification": BERT.heads["ForTokenClassification"],
        "ForMaskedLM": {"dense": "lm_head.dense", "norm": "lm_head.norm", "decoder": "lm_head.decoder"},
    },
    own_heads={"ForQuestionAnswering": ("out",), "ForMultipleChoice": ("dense", "out")},
    ties={"lm_head.decoder.weight": "{backbone}embeddings.word_embeddings.weight"},
    read=read,
    write=write_sizes,
    cannot=unlike_rotary,
    fields=frozenset({*ONLY, "rope_parameters", "rope_scaling", "rope_theta", "pack_qkv", "unpad_inputs"})
    | {"auto_map", "use_memory_efficient_attention"},
    head_style="bert",
    heads_in_old_files=lambda stored: "bert",
    is_original=is_original,
    backbone={
        "embeddings.words": ("embeddings.word_embeddings",),
        "embeddings.types": ("embeddings.token_type_embeddings",),
        "embeddings.norm": ("embeddings.LayerNorm",),
        "layers.#.attention.qkv": (f"{_LAYER}.attention.qkv_proj",),
        "layers.#.attention.out": (f"{_LAYER}.attention.o_proj",),
        "layers.#.attention_norm": (f"{_LAYER}.attn_ln",),
        "layers.#.feed_forward.up": (f"{_LAYER}.mlp.up_gate_proj",),
        "layers.#.feed_forward.down": (f"{_LAYER}.mlp.down_proj",),
        "layers.#.feed_forward_norm": (f"{_LAYER}.mlp_ln",),
    },
    other_names=OTHER_NAMES
    | {
        "layers.#.feed_forward.up": ("layers.#.mlp.up_proj", "layers.#.mlp.gate_proj"),
        "layers.#.feed_forward.down": ("layers.#.mlp.down_proj",),
        "head.norm": ("lm_head.layer_norm",),
    },
    presets={
        "gte-multilingual-base": GteConfig(),
        "gte-base-en-v1.5": GteConfig(
            vocab_size=30528, token_types=0, pad_id=0, rope=RopeParameters(rope_theta=500_000.0)
        ),
    },
)
