"""Files of Jina embeddings v3: transformers', and its authors', who call it XLM-R and add adapters."""

from typing import Any

from longspan.errors import bad
from longspan.families.base import Family
from longspan.families.jina_embeddings_v3.adapters import merged
from longspan.families.jina_embeddings_v3.model import JinaEmbeddingsV3Config
from longspan.families.roberta.files import ROBERTA, XLM_ROBERTA
from longspan.families.rotary import OTHER_NAMES, RotaryConfig, read_sizes, unlike_rotary, write_sizes
from longspan.families.schema import Raw, build_config

THETA, PAD = 20_000.0, 1
DEFAULTS = {
    "vocab_size": 250002,
    "hidden_size": 1024,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "intermediate_size": 4096,
    "max_position_embeddings": 8194,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
}
POSITIONS = "position_embedding_type"


def is_original(raw: Raw) -> bool:
    """Whether a config.json is that of the authors' own code."""
    return raw.get("model_type") == XLM_ROBERTA.model_type and raw.get(POSITIONS) == "rotary"


def read(raw: Raw) -> JinaEmbeddingsV3Config:
    """Our config of theirs, or of the authors'."""
    known, theta = dict(raw), THETA
    if is_original(raw):
        theta = raw.get("rotary_emb_base") or 10_000.0
        known = {name: value for name, value in raw.items() if name not in (POSITIONS, "rope_parameters")}
    sizes = read_sizes(known, defaults=DEFAULTS, pad=PAD, theta=theta)
    if not sizes["token_types"]:
        raise bad("type_vocab_size", "at least 1", 0)
    return build_config(JinaEmbeddingsV3Config, sizes)


def cannot(config: RotaryConfig) -> str | None:
    """What Hugging Face has no words for."""
    return unlike_rotary(config) if config.token_types else "a model without token types"


def write(config: JinaEmbeddingsV3Config) -> dict[str, Any]:
    """Their config of ours."""
    return write_sizes(config)


_LAYER = "encoder.layers.#"
JINA_EMBEDDINGS_V3 = Family(
    model_type="jina_embeddings_v3",
    name="JinaEmbeddingsV3",
    own_type="longspan-jina-embeddings-v3",
    config=JinaEmbeddingsV3Config,
    prefix="roberta.",
    heads={name: head for name, head in ROBERTA.heads.items() if name != "ForMultipleChoice"},
    own_heads={"ForMultipleChoice": ("dense", "out")},
    ties=ROBERTA.ties,
    read=read,
    write=write,
    cannot=cannot,
    fields=frozenset({POSITIONS, "auto_map", "rope_parameters", "rotary_emb_base", "use_flash_attn"})
    | {"lora_adaptations", "lora_alpha", "lora_dropout_p", "lora_main_params_trainable", "lora_rank"}
    | {"load_trained_adapters", "emb_pooler", "truncate_dim", "use_reentrant"},
    head_style="roberta",
    heads_in_old_files=lambda stored: "roberta",
    is_original=is_original,
    merge=merged,
    backbone={
        "embeddings.words": ("embeddings.word_embeddings",),
        "embeddings.types": ("embeddings.token_type_embeddings",),
        "embeddings.norm": ("emb_ln",),
        "layers.#.attention.qkv": (f"{_LAYER}.mixer.Wqkv",),
        "layers.#.attention.out": (f"{_LAYER}.mixer.out_proj",),
        "layers.#.attention_norm": (f"{_LAYER}.norm1",),
        "layers.#.feed_forward.up": (f"{_LAYER}.mlp.fc1",),
        "layers.#.feed_forward.down": (f"{_LAYER}.mlp.fc2",),
        "layers.#.feed_forward_norm": (f"{_LAYER}.norm2",),
    },
    other_names=OTHER_NAMES
    | {
        "layers.#.feed_forward.up": ("layers.#.mlp.fc1",),
        "layers.#.feed_forward.down": ("layers.#.mlp.fc2",),
    },
    presets={"jina-embeddings-v3": JinaEmbeddingsV3Config()},
)
