"""ELECTRA's files, as long as its embeddings are as wide as its layers: a BERT with other heads."""

from dataclasses import replace

from longspan.checkpoints.families.bert import BERT, read_bert
from longspan.checkpoints.schema import Raw
from longspan.errors import bad
from longspan.models.bert import BertConfig

DEFAULTS = {"embedding_size": 128, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024}
SUMMARY = {"summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"}


def read(raw: Raw) -> BertConfig:
    """Our config of theirs."""
    given = {**DEFAULTS, **raw}
    if given["embedding_size"] != given["hidden_size"]:
        repair = "Longspan has no projection between them: ELECTRA's base and large discriminators need none."
        raise bad("embedding_size", f"hidden_size, {given['hidden_size']!r}", given["embedding_size"], repair)
    for name, only in SUMMARY.items():
        if raw.get(name, only) != only:
            raise bad(name, repr(only), raw[name], "Longspan has no such head.")
    return read_bert(given)


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
    spare={},
    activations={"fill": "gelu", "classify": "gelu", "choose": "gelu"},
    pretrained="encode",
)
