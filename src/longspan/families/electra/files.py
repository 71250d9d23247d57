"""ELECTRA's files: a BERT with other heads, whose embeddings may be narrower than its layers."""

from dataclasses import replace
from typing import Any

from longspan.checkpoints.families.bert import BERT, read_bert
from longspan.checkpoints.families.bert import cannot as cannot_bert
from longspan.checkpoints.schema import Raw, shared
from longspan.errors import bad, whole
from longspan.models.bert import BertConfig
from longspan.models.config import LARGEST

DEFAULTS = {"embedding_size": 128, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024}
SUMMARY = {"summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"}


def read(raw: Raw) -> BertConfig:
    """Our config of theirs."""
    given = {**DEFAULTS, **raw}
    for name, only in SUMMARY.items():
        if raw.get(name, only) != only:
            raise bad(name, repr(only), raw[name], "Longspan has no such head.")
    size = whole("embedding_size", given["embedding_size"], 1, most=LARGEST)
    config = read_bert(given)
    return config if size == config.width else replace(config, narrow=size)


def write(config: BertConfig) -> dict[str, Any]:
    """Their config of ours."""
    return shared(config) | {"embedding_size": config.narrow or config.width}


def cannot(config: BertConfig) -> str | None:
    """What Hugging Face has no words for."""
    return cannot_bert(replace(config, narrow=None))


ELECTRA = replace(
    BERT,
    model_type="electra",
    name="Electra",
    prefix="electra.",
    heads={
        **BERT.heads,
        "fill": {
            "dense": "generator_predictions.dense",
            "norm": "generator_predictions.LayerNorm",
            "decoder": "generator_lm_head",
        },
        "classify": {"dense": "classifier.dense", "out": "classifier.out_proj"},
        "choose": {"dense": "sequence_summary.summary", "out": "classifier"},
    },
    ties={"generator_lm_head.weight": "{body}embeddings.word_embeddings.weight"},
    read=read,
    write=write,
    cannot=cannot,
    spare={},
    activations={"fill": "gelu", "classify": "gelu", "choose": "gelu"},
    pretrained="encode",
)
