"""RoBERTa's files, and those of XLM-R and CamemBERT: positions begin after the padding token's number."""

from dataclasses import replace

from longspan.families.bert.files import BERT, refuse_decoder, unlike_bert
from longspan.families.roberta.model import RobertaConfig
from longspan.families.schema import Raw, build_config, common


def read(raw: Raw) -> RobertaConfig:
    """Our config of theirs."""
    refuse_decoder(raw)
    vocab = {"vocab_size": 50265} if raw.get("model_type") == "roberta" else {}
    return build_config(RobertaConfig, common(raw, pad=1, defaults=vocab, offset=True))


def cannot(config: RobertaConfig) -> str | None:
    """What Hugging Face has no words for."""
    if config.radius is not None:
        return "a window"
    if config.position_offset != config.pad_id + 1:
        return "positions that do not follow the padding token"
    return unlike_bert(config)


ROBERTA = replace(
    BERT,
    model_type="roberta",
    name="Roberta",
    config=RobertaConfig,
    head_style="roberta",
    prefix="roberta.",
    heads={
        **BERT.heads,
        "ForMaskedLM": {"dense": "lm_head.dense", "norm": "lm_head.layer_norm", "decoder": "lm_head.decoder"},
        "ForSequenceClassification": {"dense": "classifier.dense", "out": "classifier.out_proj"},
    },
    ties={
        "lm_head.decoder.weight": "{backbone}embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    read=read,
    cannot=cannot,
    unused={},
    presets={"roberta-base": RobertaConfig()},
)
BGE_M3 = RobertaConfig(
    vocab_size=250_002, width=1024, layers=24, heads=16, feed_forward=4096, positions=8192, token_types=1
)
XLM_ROBERTA = replace(ROBERTA, model_type="xlm-roberta", name="XLMRoberta", presets={"bge-m3": BGE_M3})
CAMEMBERT = replace(ROBERTA, model_type="camembert", name="Camembert", presets={})
