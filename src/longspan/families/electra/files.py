"""ELECTRA's files: a BERT with other heads, whose embeddings may be narrower than its layers."""

from dataclasses import replace

from longspan.errors import bad, whole
from longspan.families.bert.files import BERT
from longspan.families.bert.files import cannot as cannot_bert
from longspan.families.bert.files import read as read_bert
from longspan.families.bert.model import BertConfig
from longspan.families.config import LARGEST
from longspan.families.schema import Raw, shared

DEFAULTS = {"embedding_size": 128, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024}
SUMMARY = {"summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"}


def read(raw: Raw) -> BertConfig:
    """Our config of theirs."""
    known = {**DEFAULTS, **raw}
    for name, only in SUMMARY.items():
        if raw.get(name, only) != only:
            raise bad(name, repr(only), raw[name], "Longspan has no such head.")
    size = whole("embedding_size", known["embedding_size"], 1, most=LARGEST)
    config = read_bert(known)
    return config if size == config.width else replace(config, embedding_size=size)


ELECTRA = replace(
    BERT,
    model_type="electra",
    name="Electra",
    prefix="electra.",
    heads={
        **BERT.heads,
        "ForMaskedLM": {
            "dense": "generator_predictions.dense",
            "norm": "generator_predictions.LayerNorm",
            "decoder": "generator_lm_head",
        },
        "ForSequenceClassification": {"dense": "classifier.dense", "out": "classifier.out_proj"},
        "ForMultipleChoice": {"dense": "sequence_summary.summary", "out": "classifier"},
    },
    ties={"generator_lm_head.weight": "{backbone}embeddings.word_embeddings.weight"},
    read=read,
    write=lambda config: shared(config) | {"embedding_size": config.embedding_size or config.width},
    cannot=lambda config: cannot_bert(replace(config, embedding_size=None)),
    unused={},
    activations={"ForMaskedLM": "gelu", "ForSequenceClassification": "gelu", "ForMultipleChoice": "gelu"},
    pretrained="Model",
    fields=frozenset({"embedding_size"}),
    presets={},
)
