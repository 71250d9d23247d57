"""Files of Jina BERT: they say they are BERT's, and that positions are ALiBi's."""

from typing import Any

from longspan.errors import bad
from longspan.families.base import Family, stated_class
from longspan.families.bert.files import BERT, refuse_decoder
from longspan.families.jina_bert.model import JinaBertConfig
from longspan.families.keys import BACKBONE
from longspan.families.schema import Raw, build_config, common

NAME, POSITIONS, BLOCKS = "JinaBert", "position_embedding_type", "feed_forward_type"
ONLY = {POSITIONS: "alibi", BLOCKS: "geglu", "hidden_act": "gelu"}
OTHER = "qk-post-norm"
"""A variant for code, with norms of queries and keys, whose config differs in the name of its code only."""


def is_original(raw: Raw) -> bool:
    """Whether a config.json, which says it is BERT's, is that of Jina's own code."""
    named = NAME in (stated_class(raw) or "") or raw.get(POSITIONS) == ONLY[POSITIONS]
    return raw.get("model_type") == BERT.model_type and (named or raw.get(BLOCKS) is not None)


def read(raw: Raw) -> JinaBertConfig:
    """Our config of theirs."""
    refuse_decoder(raw)
    if OTHER in str(raw.get("auto_map")):
        raise bad("auto_map", f"without {OTHER}", raw["auto_map"], "Longspan has no such model.")
    known = {BLOCKS: "original", "hidden_act": "gelu", POSITIONS: "absolute", **raw}
    for name, only in ONLY.items():
        if known[name] != only:
            raise bad(name, f"{only!r}", known[name], "Longspan has no such model.")
    defaults = {"vocab_size": 30528, "max_position_embeddings": 8192}
    stated = {
        name: value
        for name, value in raw.items()
        if name != POSITIONS and (name != "pad_token_id" or value is not None)
    }
    return build_config(JinaBertConfig, common(stated, pad=0, defaults=defaults, offset=False))


def write(config: JinaBertConfig) -> dict[str, Any]:
    """Never called: see `cannot`."""
    raise NotImplementedError


def cannot(config: JinaBertConfig) -> str | None:
    """What Hugging Face has no words for."""
    return "scores by distance that are not learned"


_BLOCK = "encoder.layer.#.mlp"
JINA_BERT = Family(
    model_type="jina-bert",
    name=NAME,
    own_type="longspan-jina-bert",
    config=JinaBertConfig,
    prefix=BERT.prefix,
    heads=BERT.heads,
    ties=BERT.ties,
    read=read,
    write=write,
    cannot=cannot,
    fields=frozenset({POSITIONS, BLOCKS, "auto_map", "emb_pooler"}),
    head_style="bert",
    heads_in_old_files=lambda stored: "bert",
    is_original=is_original,
    own_only=True,
    backbone=BACKBONE
    | {
        "layers.#.feed_forward.up": (f"{_BLOCK}.gated_layers",),
        "layers.#.feed_forward.down": (f"{_BLOCK}.wo",),
        "layers.#.feed_forward_norm": (f"{_BLOCK}.layernorm",),
    },
    presets={
        "jina-bert-v2-base": JinaBertConfig(),
        "jina-bert-v2-small": JinaBertConfig(width=512, layers=4, heads=8, feed_forward=2048),
    },
)
