"""BERT's files."""

from longspan.errors import bad
from longspan.families.base import PRETRAINING, Family, unlike_bert
from longspan.families.bert.model import BertConfig
from longspan.families.schema import Raw, build_config, common, flag, shared


def read(raw: Raw) -> BertConfig:
    """Our config of theirs."""
    known = {name: value for name, value in raw.items() if name != "pad_token_id" or value is not None}
    refuse_decoder(raw)
    return build_config(BertConfig, common(known, pad=0, defaults={}, offset=False))


def refuse_decoder(raw: Raw) -> None:
    """Raise for a model that reads from left to right."""
    if flag(raw, "is_decoder", False):
        raise bad("is_decoder", "false", True, "Longspan reads BERT and RoBERTa as encoders only.")


def cannot(config: BertConfig) -> str | None:
    """What Hugging Face has no words for."""
    if config.radius is not None:
        return "a window"
    if config.position_offset:
        return "positions that do not begin at 0"
    return unlike_bert(config)


BERT = Family(
    model_type="bert",
    name="Bert",
    own_type="longspan-bert",
    config=BertConfig,
    prefix="bert.",
    heads={
        "Model": {"dense": "{backbone}pooler.dense"},
        "ForMaskedLM": {
            "dense": "cls.predictions.transform.dense",
            "norm": "cls.predictions.transform.LayerNorm",
            "decoder": "cls.predictions.decoder",
        },
        "ForSequenceClassification": {"dense": "{backbone}pooler.dense", "out": "classifier"},
        "ForTokenClassification": {"out": "classifier"},
        "ForQuestionAnswering": {"out": "qa_outputs"},
        "ForMultipleChoice": {"dense": "{backbone}pooler.dense", "out": "classifier"},
    },
    ties={
        "cls.predictions.decoder.weight": "{backbone}embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    read=read,
    write=shared,
    cannot=cannot,
    unused={PRETRAINING: ("{backbone}pooler.dense", "cls.seq_relationship")},
    presets={"bert-base": BertConfig(), "minilm-l6": BertConfig(width=384, layers=6, feed_forward=1536)},
)
