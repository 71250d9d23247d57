"""BERT's files, and those of RoBERTa, XLM-R and CamemBERT, whose positions begin behind the padding token."""

from dataclasses import replace
from typing import Any

from longspan.checkpoints.families.base import PRETRAINING, Family, unlike_bert
from longspan.checkpoints.schema import Raw, common, flag, made, shared
from longspan.errors import bad
from longspan.models.bert import BertConfig


def read_bert(raw: Raw) -> BertConfig:
    """Our config of BERT's."""
    known = {name: value for name, value in raw.items() if name != "pad_token_id" or value is not None}
    return _read(known, pad=0, offset=False)


def read_roberta(raw: Raw) -> BertConfig:
    """Our config of RoBERTa's."""
    return _read(raw, pad=1, offset=True)


def _read(raw: Raw, *, pad: int, offset: bool) -> BertConfig:
    if flag(raw, "is_decoder", False):
        raise bad("is_decoder", "false", True, "Longspan reads BERT and RoBERTa as encoders only.")
    vocab = {"vocab_size": 50265} if raw.get("model_type") == "roberta" else {}
    return made(BertConfig, common(raw, pad=pad, defaults=vocab, offset=offset))


def write(config: BertConfig) -> dict[str, Any]:
    """Their config of ours."""
    return shared(config)


def cannot(config: BertConfig) -> str | None:
    """What Hugging Face has no words for."""
    if config.radius is not None:
        return "a window"
    if config.position_offset not in (0, config.pad_id + 1):
        return "positions that do not follow the padding token"
    return unlike_bert(config)


BERT = Family(
    model_type="bert",
    name="Bert",
    own_type="longspan-bert",
    kind=BertConfig,
    prefix="bert.",
    heads={
        "encode": {"dense": "{body}pooler.dense"},
        "fill": {
            "dense": "cls.predictions.transform.dense",
            "norm": "cls.predictions.transform.LayerNorm",
            "decoder": "cls.predictions.decoder",
        },
        "classify": {"dense": "{body}pooler.dense", "out": "classifier"},
        "tag": {"out": "classifier"},
        "answer": {"out": "qa_outputs"},
        "choose": {"dense": "{body}pooler.dense", "out": "classifier"},
    },
    ties={
        "cls.predictions.decoder.weight": "{body}embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    read=read_bert,
    write=write,
    cannot=cannot,
    spare={PRETRAINING: ("{body}pooler.dense", "cls.seq_relationship")},
)
ROBERTA = replace(
    BERT,
    model_type="roberta",
    name="Roberta",
    prefix="roberta.",
    heads={
        **BERT.heads,
        "fill": {"dense": "lm_head.dense", "norm": "lm_head.layer_norm", "decoder": "lm_head.decoder"},
        "classify": {"dense": "classifier.dense", "out": "classifier.out_proj"},
    },
    ties={
        "lm_head.decoder.weight": "{body}embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    read=read_roberta,
    spare={},
    offset=True,
)
XLM_ROBERTA = replace(ROBERTA, model_type="xlm-roberta", name="XLMRoberta")
CAMEMBERT = replace(ROBERTA, model_type="camembert", name="Camembert")
